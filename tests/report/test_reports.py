"""Reports of real results: valid, complete, bounded, and without anything that a reader's program would obey."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ckpt_tui
from ckpt_tui.facts.agreement import Agreement
from ckpt_tui.facts.files import Finding, Severity, State
from ckpt_tui.facts.outcome import CkptError, UsageError
from ckpt_tui.facts.scan import NotCompared, ScanResult
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.present.safe import escape
from ckpt_tui.report.json import decode
from ckpt_tui.report.markdown import LIMIT
from ckpt_tui.report.redact import redacted
from ckpt_tui.report.saving import Format, format_of, render, save
from ckpt_tui.report.text import agreement_text, scan_text
from tests.agreement.made_up import Model, Shard, agreement_of, judge_all, recorded, scan_of, tiny, witness
from tests.support import faults
from tests.support.schema import problems

SETTINGS = ScanSettings(use_cache=False, threads=1, segments=True)
SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Agreement:
    """Five real copies, four of them faulty in their own way."""
    folder = tmp_path_factory.mktemp("real")
    good = faults.write_model(folder / "good")
    folders = [good]
    for fault in ("flip_a_bit", "zero_the_tail", "tune_a_layer", "cut_the_tail"):
        folders.append(Path(shutil.copytree(good, folder / fault)))
        getattr(faults, fault)(folders[-1], good)
    return ckpt_tui.compare(*folders, settings=SETTINGS)


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> ScanResult:
    folder = faults.write_model(tmp_path_factory.mktemp("scan") / "model")
    faults.cut_the_tail(folder, folder)
    return ckpt_tui.scan(folder, SETTINGS)


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return loaded


def test_json_of_real_results_is_what_the_schemas_say(real: Agreement, scanned: ScanResult) -> None:
    assert problems(json.loads(render(real, Format.JSON)), schema("agreement-1.json")) == []
    assert problems(json.loads(render(scanned, Format.JSON)), schema("scan-1.json")) == []
    assert any(segment.drill for one in real.differences for segment in one.segments)


def test_the_check_against_the_schema_finds_what_is_wrong(real: Agreement) -> None:
    body = json.loads(render(real, Format.JSON))
    body["verdict"] = "perhaps"
    del body["ranks"][0]["host"]
    body["differences"][0]["segments"][0]["length"] = "1"
    assert len(problems(body, schema("agreement-1.json"))) == 3


def test_a_saved_result_comes_back_as_it_was(real: Agreement, scanned: ScanResult) -> None:
    assert decode(render(real, Format.JSON), "r") == real
    assert decode(render(scanned, Format.JSON), "s") == scanned


def visible(page: str) -> str:
    """The text of an HTML page as a browser shows it."""

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []
            self.tags: set[str] = set()
            self.attributes: set[str] = set()

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.tags.add(tag)
            self.attributes |= {name for name, _ in attrs}

        def handle_data(self, data: str) -> None:
            self.seen.append(data)

    reader = Reader()
    reader.feed(page)
    assert reader.tags <= TAGS, reader.tags - TAGS
    assert not {name for name in reader.attributes if name.startswith("on") or name in {"src", "href", "srcdoc"}}
    return "".join(reader.seen)


TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "span", "div", "table",
    "thead", "tbody", "tr", "th", "td", "p", "ul", "li", "pre", "code", "section", "figure", "figcaption",
    "svg", "g", "rect", "text",
}  # fmt: skip


def test_every_format_says_what_matters(real: Agreement) -> None:
    markdown = render(real, Format.MARKDOWN).decode()
    page = render(real, Format.HTML).decode()
    for shown in (markdown, visible(page)):
        for piece in (
            "DIFFER", faults.S2, "layers.2.attn.weight", "truncated", "bit-flip, 1 bit in 1 byte", "zero-tail",
            "every byte", "Groups", "Differences", "Environment", "ckpt-tui 0", "cp --remove-destination",
        ):  # fmt: skip
            assert piece in shown, piece
    assert "<svg" in page
    assert "prefers-color-scheme: dark" in page


def test_a_page_asks_for_nothing_from_elsewhere(real: Agreement) -> None:
    page = render(real, Format.HTML).decode()
    assert not re.search(r"https?:|//|<script|<link|<img|@import|url\(", page.replace("<!doctype html>", ""))
    assert "default-src 'none'" in page


def test_a_scan_is_reported_too(scanned: ScanResult) -> None:
    for shown in (render(scanned, Format.MARKDOWN).decode(), visible(render(scanned, Format.HTML).decode())):
        for piece in ("DAMAGED", faults.S1, "truncated", "12,345 bytes short", "Findings", "Files: "):
            assert piece in shown
    kept = recorded(tiny(), breaks=[faults.S1])
    assert "kept (hub)" in render(scan_of(kept), Format.MARKDOWN).decode()


# Names that want to be more than names.

HOSTILE = [
    "a|b.safetensors",
    "`code` ``` fence",
    "# heading\n## another\r\n- list",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</title></style></svg><b>bold</b>",
    "&lt;b&gt; &amp; &#64;",
    "**bold** _it_ ~~gone~~ [link](http://evil.example) ![i](http://evil.example/i.png)",
    "@everyone #1 GH-1 org/repo#2 www.evil.example :tada: $x^2$",
    "[red]markup[/red] [/b]",
    "\x1b[31mred\x1b]8;;http://evil\x07link\x1b]8;;\x07\x9b2J",
    "right\u202eto\u2066left\u200f",
    "\udcff\udcfe raw bytes",
    "tab\tand\x00nul\x7f",
    " leading and trailing ",
    "`",
    "\\",
    "\\`\\|",
    "x" * 3000,
    "| - | - |\n|---|---|",
    "עברית.safetensors",
    "",
]


def hostile_agreement(raw: str) -> Agreement:
    """An agreement in which file, tensor, host, path, error, repository and warning all have this name."""
    name = escape(raw) or "empty"
    model = Model(
        {name: Shard(((name, "1"), ("b", "2"))), "good.safetensors": Shard((("c", "3"),))},
        warnings=(name,),
        not_compared=(NotCompared(name=name, size=1),),
        repo_id=name,
        revision="a" * 40,
    )
    other = model.with_shard(name, tensors=((name, "x"), ("b", "2")))
    broken = model.with_shard(name, state=State.UNREADABLE)
    heard = [witness(one, rank, host=name, copy=name) for rank, one in enumerate((model, other, broken, model))]
    return judge_all(heard, absent={4: name})


def hostile_scan(raw: str) -> ScanResult:
    name = escape(raw) or "empty"
    finding = Finding(code="x", severity=Severity.ERROR, message=name, file=name, tensor=name)
    model = Model({name: Shard(((name, "1"),))}, findings=(finding,), warnings=(name,), repo_id=name, revision=name)
    return scan_of(model, host=name, copy=name)


@pytest.mark.parametrize("raw", HOSTILE)
def test_hostile_names_are_text_in_every_format(raw: str) -> None:
    name = escape(raw) or "empty"
    for result in (hostile_agreement(raw), hostile_scan(raw)):
        assert decode(render(result, Format.JSON), "x") == result
        page = render(result, Format.HTML).decode()
        shown = visible(page)
        assert name[:1000] in shown
        assert printable(page)
        markdown = render(result, Format.MARKDOWN).decode()
        assert printable(markdown)
        assert len(markdown) < LIMIT
        assert not markup_outside_code(markdown), markup_outside_code(markdown)
        plain = agreement_text(result, 0.0) if isinstance(result, Agreement) else scan_text(result, 0.0)
        assert printable(plain)
        assert printable(render(redacted(result), Format.MARKDOWN).decode())


def printable(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def markup_outside_code(markdown: str) -> list[str]:
    """What a tracker would obey: looked for where no code span or fence is, by the rules of CommonMark for those."""
    found = []
    fence = None
    for line in markdown.split("\n"):
        if fence is not None:
            fence = None if line == fence else fence
            continue
        opened = re.match(r"(`{3,})\w*$", line)
        if opened:
            fence = opened[1]
            continue
        bare = re.sub(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)", "", line).removeprefix("**").removesuffix("**")
        if line.startswith("|"):
            bare = bare.replace("|", "")
        hit = re.search(r"[`<>*_~|$\\@#!&]|\]\(|://|www\.|(?<!^)\[x?\]", re.sub(r"^#+ ", "", bare))
        if hit:
            found.append(line)
    assert fence is None
    return found


def test_a_table_row_has_as_many_cells_as_its_head_whatever_names_hold() -> None:
    for raw in HOSTILE:
        markdown = render(hostile_agreement(raw), Format.MARKDOWN).decode()
        width = 0
        for line in markdown.split("\n"):
            if not line.startswith("| "):
                width = 0
                continue
            cells = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))
            width = width or cells
            assert cells == width, line


# Size.


def test_markdown_fits_an_issue_tracker_whatever_the_size() -> None:
    shards = {
        f"model-{n:05}-{'x' * 120}.safetensors": Shard(tuple((f"layers.{n}.{k}.{'y' * 300}", "1") for k in range(40)))
        for n in range(300)
    }
    other = {name: Shard(tuple((key, "2") for key, _ in shard.tensors)) for name, shard in shards.items()}
    agreement = agreement_of([Model(shards), Model(other), Model(shards)])
    markdown = render(agreement, Format.MARKDOWN).decode()
    assert len(markdown) < LIMIT
    assert re.search(r"and \d+ more files", markdown)
    assert re.search(r"and \d+ more segments", markdown)
    assert "more characters" in markdown


def test_one_name_of_a_megabyte_is_cut_in_the_middle_and_counted() -> None:
    agreement = hostile_agreement("n" * (1 << 20))
    markdown = render(agreement, Format.MARKDOWN).decode()
    assert len(markdown) < LIMIT
    assert "more characters" in markdown
    assert len(render(agreement, Format.HTML)) < 200_000


def test_thousands_of_ranks_are_folded() -> None:
    agreement = agreement_of([tiny()] * 1500)
    markdown = render(agreement, Format.MARKDOWN).decode()
    assert len(markdown) < LIMIT
    assert re.search(r"and [\d,]+ more rows", markdown)


# Files.


def test_a_report_is_written_whole_and_nothing_is_overwritten(real: Agreement, tmp_path: Path) -> None:
    for suffix in (".json", ".md", ".html"):
        target = tmp_path / f"report{suffix}"
        save(real, target)
        before = target.read_bytes()
        with pytest.raises(UsageError, match="there already"):
            save(real, target)
        assert target.read_bytes() == before
        save(real, target, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json", "report.md"]


def test_a_file_whose_parts_do_not_fit_each_other_is_rendered_for_what_it_says(
    real: Agreement, scanned: ScanResult
) -> None:
    agreement, scan = json.loads(render(real, Format.JSON)), json.loads(render(scanned, Format.JSON))
    drills = [one["drill"] for row in agreement["differences"] for one in row["segments"] if one.get("drill")]
    firsts = [side["first"] for drill in drills for side in drill["sides"] if side.get("first")]
    assert firsts
    for first in firsts:
        first["reference"] |= {"hex": "", "around": "no hex"}
    agreement |= {"ranks": agreement["ranks"][:1], "created": 1e300}
    agreement["groups"][0]["ranks"] = []
    scan["created"] = -1e300
    for file in scan["files"]:
        file["source"], file["hashed_at"] = "cache", None
    for changed in (agreement, scan):
        result = decode(json.dumps(changed).encode(), "x")
        shown = agreement_text(result, 0.0) if isinstance(result, Agreement) else scan_text(result, 0.0, hashes=True)
        assert shown.count("\n") > 5
        assert "at no time that there is" in render(result, Format.MARKDOWN).decode()
        assert visible(render(result, Format.HTML).decode())


def test_a_suffix_that_is_none_is_told_before_anything_is_done(real: Agreement, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.json, \.md"):
        format_of(tmp_path / "report.pdf")
    with pytest.raises(CkptError, match="could not be written"):
        save(real, tmp_path / "no such folder" / "report.md")


# Without hosts and paths.


def test_a_redacted_report_names_no_host_and_no_path() -> None:
    model = tiny(warnings=("the cache at /home/alice/.cache is full, 10.1.2.3:29400 and node-a.example.org:29400 too",))
    cut = model.with_shard(faults.S1, state=State.MISSING) if faults.S1 in model.shards else model
    hosts = ["node-a.example.org", "b", "node-c", "node-c"]
    odd = model.with_shard("model-00002-of-00002.safetensors", tensors=(("layers.1.w", "x"), ("lm_head", "h")))
    models = [model, odd, model, cut]
    heard = [
        witness(one, rank, host=host, copy=f"alice's secret/{rank}")
        for rank, (one, host) in enumerate(zip(models, hosts, strict=True))
    ]
    agreement = judge_all(heard, absent={4: "rank 4 (host b): silent, was at https://hub.internal/x"})
    agreement = msgspec.structs.replace(
        agreement,
        ranks=tuple(msgspec.structs.replace(one, file_system="nfs4 filer-7:/export") for one in agreement.ranks),
    )
    hidden = redacted(agreement)
    for format_ in Format:
        shown = render(hidden, format_).decode()
        for secret in (
            "node-a",
            "node-c",
            "alice",
            "secret",
            "/models",
            "10.1.2.3",
            "hub.internal",
            "filer-7",
            "(b)",
            "host b",
        ):
            assert secret not in shown, (format_, secret)
        assert "model-00002-of-00002.safetensors" in shown
    assert hidden.verdict == agreement.verdict
    assert [report.host for report in hidden.ranks] == ["host-1", "host-2", "host-3", "host-3"]


def test_a_redacted_scan_names_no_host_and_no_path(scanned: ScanResult) -> None:
    shown = render(redacted(scanned), Format.JSON).decode()
    assert scanned.host not in json.loads(shown)["host"]
    assert scanned.checkpoint.path not in shown
    assert json.loads(shown)["host"] == "host-1"
