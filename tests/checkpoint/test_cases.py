"""The offline cases of `tests/cases/make_cases.py`, each held against what its own EXPECT.md says.

The generator writes damaged and odd checkpoints after public reports, and says of each how it has to end: the outcome,
the files' states and the facts that have to be told. What is not whole yet is an expected failure with its reason.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from ckpt_tui.digest import scan
from ckpt_tui.facts.files import SegmentKind, Severity
from ckpt_tui.facts.outcome import Exit, UsageError, scan_code
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.present.safe import escape, unescape
from tests.cases import make_cases
from tests.support.unprivileged import run_unprivileged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Cases about one checkpoint as it lies there. O25 is in test_many_tensors; O27, O29 and O34 are about the cache and
#: about change, and O31 is about comparing: test_cases_over_time.
CASES = (
    *("O01", "O02", "O03", "O04", "O06", "O07", "O08", "O09", "O10", "O12"),
    *("O14", "O16", "O18", "O19", "O20", "O21", "O23", "O26", "O30", "O33"),
)
#: What is not whole yet, and why.
NOT_YET = dict.fromkeys(
    ("a2-empty-rank-file", "b-rank-file-missing", "d-rank-file-short", "e-metadata-cut", "f-metadata-canary"),
    "torch's .metadata has no reader: it and the rank files are compared, and not held against each other",
)
#: Needs a user who may not read everything.
UNPRIVILEGED = {"O30"}
SETTINGS = ScanSettings(use_cache=False, segments=True, threads=1)
#: What an outcome of the cases is as an exit code, without and with --strict.
EXITS = {
    "ok": (Exit.SAME, Exit.SAME),
    "warn": (Exit.SAME, Exit.DIFFERENT),
    "bad": (Exit.DIFFERENT, Exit.DIFFERENT),
    "unchecked": (Exit.UNDECIDED, Exit.UNDECIDED),
}


#: What must not happen, where a result shows it; the rest (no traceback, nothing read elsewhere) fails by itself.
MUST_NOT: dict[str, Callable[[ScanResult, str], bool]] = {
    "print an identity for the checkpoint": lambda result, _: result.identity is None,
    "the word truncated or incomplete": lambda _, said: not re.search("truncated|incomplete", said),
    "HeaderTooLarge as the only explanation": lambda _, said: "HeaderTooLarge" not in said,
    "warn about a zero bias": lambda result, _: {one.severity for one in result.findings} <= {Severity.NOTE},
    "report model.safetensors as missing or empty": lambda _, said: "model.safetensors:" not in said,
    "list the folder instead and call it complete": lambda result, _: result.content is None,
    "guess the shards by listing the folder": lambda result, _: result.content is None,
    "read or hash the sidecars": lambda result, _: not any("._" in file.name for file in result.files),
}


class Variant(NamedTuple):
    """How one variant of a case has to end."""

    path: Path
    exit: str
    states: dict[str, str]
    must_name: list[str]
    must_not: list[str]


def generate(cid: str, target: Path) -> dict[str, Variant]:
    """Write one case; its variants by the first part of their names."""
    case = make_cases.CASES[cid]
    folder = target / cid
    folder.mkdir()
    case.variants.clear()
    case.notes.clear()
    case.fn(folder, case)
    return {
        one["variant"].split("/")[0]: Variant(
            folder / one["variant"], one["exit"], one["states"], one["must_name"], one["must_not"]
        )
        for one in case.variants
        if (folder / one["variant"]).is_dir()
    }


def parameters() -> Iterator[object]:
    """Every variant of every case. The cases have to be written once to know them."""
    with tempfile.TemporaryDirectory() as folder:
        for cid in CASES:
            for name in generate(cid, Path(folder)):
                marks = [pytest.mark.xfail(strict=True, reason=NOT_YET[name])] if name in NOT_YET else []
                yield pytest.param(cid, name, id=f"{cid}-{name}", marks=marks)
        make_cases.restore_modes(Path(folder))


@pytest.fixture(scope="module")
def cases() -> Iterator[dict[str, dict[str, Variant]]]:
    """All cases, in a folder that other users may enter."""
    folder = Path(tempfile.mkdtemp(prefix="ckpt-tui-cases-"))
    folder.chmod(0o755)
    yield {cid: generate(cid, folder) for cid in CASES}
    make_cases.restore_modes(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize(("cid", "name"), list(parameters()))
def test_every_case_ends_as_its_own_page_says(
    cid: str, name: str, cases: dict[str, dict[str, Variant]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variant = cases[cid][name]
    if variant.exit == "usage":
        with pytest.raises(UsageError) as raised:
            scan(str(variant.path), SETTINGS)
        said = str(raised.value)
    else:
        result = run(variant.path, unprivileged=cid in UNPRIVILEGED)
        said = everything_said(result)
        states = states_of(result)
        assert {file: states.get(file) for file in variant.states} == variant.states
        assert (scan_code(result), scan_code(result, strict=True)) == EXITS[variant.exit], said
        if variant.exit in {"bad", "unchecked"} and broken_weights(result):
            assert result.content is None or "digest-mismatch" in variant.states.values()
        assert [what for what in variant.must_not if not MUST_NOT.get(what, _unseen)(result, said)] == []
    for fact in variant.must_name:
        assert plain(fact) in plain(said)
    assert not Path(make_cases.CANARY).exists()


def _unseen(_result: ScanResult, _said: str) -> bool:
    return True


def run(path: Path, *, unprivileged: bool) -> ScanResult:
    """The scan's result, after a journey through JSON, as another process would see it."""

    def scanned() -> bytes:
        return msgspec.json.encode(scan(str(path), SETTINGS))

    return msgspec.json.decode(run_unprivileged(scanned) if unprivileged else scanned(), type=ScanResult)


def states_of(result: ScanResult) -> dict[str, str]:
    """The state of every file that is spoken of, by the name that is on disk."""
    states = {row.name: "extra" for row in result.not_compared}
    states |= {one.file: one.code for one in result.findings if one.file and one.code in {"ignored", "broken-link"}}
    states |= {file.name: file.state.value for file in result.files}
    return {unescape(name): state for name, state in states.items()}


def broken_weights(result: ScanResult) -> bool:
    """Whether a weight file is not good."""
    return any(file.role == "weights" and file.state != "good" for file in result.files)


def everything_said(result: ScanResult) -> str:
    """All the facts of a result, in whatever words: what any output can tell."""
    words = [finding.message for finding in result.findings]
    for file in result.files:
        segments = file.segment_table or ()
        tensors = [one for one in segments if one.kind is SegmentKind.TENSOR]
        words += [file.name, file.error or "", str(file.size), f"{len(tensors)} tensors"]
        words += [f"{one.name} {one.dtype}" for one in tensors]
        words += [f"matches the recorded hash of {claim.origin}" for claim in file.claims if claim.holds]
    return "\n".join(words)


def plain(text: str) -> str:
    """Text without the commas in its numbers."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", text)


def test_o20_rank_files_are_hashed_and_neither_they_nor_their_metadata_is_ever_unpickled(
    cases: dict[str, dict[str, Variant]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = run(cases["O20"]["a-complete"].path, unprivileged=False)
    assert {file.name for file in whole.files} == {"__0_0.distcp", "__1_0.distcp", ".metadata"}
    for name, variant in cases["O20"].items():
        result = run(variant.path, unprivileged=False)
        assert not broken_weights(result), name
        same_bytes = name not in {"a2-empty-rank-file", "b-rank-file-missing", "d-rank-file-short"}
        assert (result.content == whole.content) is same_bytes, name
        others = name in {"a-complete", "b-rank-file-missing", "d-rank-file-short"}
        assert (result.sidecars == whole.sidecars) is others, name
    assert list(tmp_path.iterdir()) == []


def test_leftovers_beside_the_shards_change_no_digest(cases: dict[str, dict[str, Variant]], tmp_path: Path) -> None:
    beside = cases["O06"]["a-with-index"].path
    alone = tmp_path / "alone"
    alone.mkdir()
    names = {file.name for file in run(beside, unprivileged=False).files}
    for name in names:
        shutil.copy(beside / name, alone)
    ours, theirs = run(beside, unprivileged=False), run(alone, unprivileged=False)
    assert (ours.identity, ours.content, ours.sidecars) == (theirs.identity, theirs.content, theirs.sidecars)


def test_where_only_sidecars_are_left_the_refusal_says_so(cases: dict[str, dict[str, Variant]]) -> None:
    with pytest.raises(UsageError, match="no weights found; only sidecars and leftovers are there"):
        scan(str(cases["O06"]["c-only-sidecars"].path), SETTINGS)


def test_names_are_told_on_one_line_each(cases: dict[str, dict[str, Variant]]) -> None:
    result = run(cases["O26"]["a-indexed"].path, unprivileged=False)
    for file in result.files:
        assert escape(unescape(file.name)) == file.name
        assert file.name.isprintable()
