"""What people read: the verdict first, names whole, a hundred columns, and nothing that a terminal obeys."""

from __future__ import annotations

import msgspec
import pytest

from ckpt_tui.facts.agreement import Agreement, GivenValue, Stage, Unequal
from ckpt_tui.facts.files import Finding, Severity, State
from ckpt_tui.facts.scan import NotCompared, ScanResult
from ckpt_tui.present import words
from ckpt_tui.report.columns import WIDTH, table, width, wrapped
from ckpt_tui.report.text import agreement_text, scan_text
from tests.agreement.made_up import S1, S2, Model, Shard, agreement_of, recorded, scan_of, tiny

TINY = tiny()
FLIPPED = TINY.with_shard(S2, tensors=(("layers.1.w", "x"), ("lm_head", "h")))
NOW = 3 * 86400.0 + 1


def text(agreement: Agreement) -> str:
    shown = agreement_text(agreement, NOW)
    checked(shown)
    return shown


def checked(shown: str) -> None:
    assert shown.endswith("\n")
    for line in shown[:-1].split("\n"):
        assert line.isprintable()
        assert line == line.rstrip()
        # A command is pasted as one line, a name is read as one piece.
        assert len(line) <= WIDTH or " " not in line.strip() or line.startswith("      mend "), line


def test_an_agreement_says_so_first_and_what_it_rests_on_last() -> None:
    lines = text(agreement_of([TINY] * 3)).splitlines()
    assert lines[0] == "AGREE  all 3 hold the same checkpoint"
    assert lines[-1].strip() == "3 ranks on 1 host, 0/6 cached, oldest digest 3 d"


def test_a_difference_shows_groups_file_tensor_and_cause() -> None:
    shown = text(agreement_of([TINY, FLIPPED, TINY]))
    assert shown.startswith("DIFFER  rank 1 differs from ranks [0,2] in 1 of 2 weight files:")
    for piece in (S2, "layers.1.w", "A [0,2]", "B [1]", "majority", "minority", "2 of 3 copies", "8 bytes", "cause"):
        assert piece in shown
    assert S1 not in shown
    assert "lm_head" not in shown


def test_other_shards_of_equal_tensors_never_read_as_if_a_tensor_differed() -> None:
    tensors = [tensor for shard in TINY.shards.values() for tensor in shard.tensors]
    three = {f"model-{n + 1:05}-of-00003.safetensors": Shard(tuple(tensors[n::3])) for n in range(3)}
    shown = text(agreement_of([TINY, TINY.but(shards=three)]))
    assert "5 tensors equal, split differently" in shown
    assert "tensor differs" not in shown
    assert "tensors differ" not in shown
    assert "only in B [1]" in shown


def test_equal_weights_beside_another_config_are_said() -> None:
    shown = text(agreement_of([TINY, TINY.but(sidecars={"config.json": "c ", "tokenizer.json": "t"})]))
    assert "weights equal" in shown
    assert "config.json" in shown
    assert S1 not in shown


def test_errors_absent_warnings_and_what_was_left_out_are_all_there() -> None:
    model = TINY.but(warnings=("the cache is full",), not_compared=(NotCompared(name="x.safetensors", size=1 << 20),))
    broken = model.with_shard(S2, state=State.UNREADABLE)
    shown = text(agreement_of([model, broken], absent={2: "silent for 61 s, was reading " + S1}))
    for piece in (
        "INCOMPLETE",
        "errors",
        f"rank 1: {S2}: unreadable",
        "absent",
        "rank 2: silent for 61 s",
        "ranks [0,1]: the cache is full",
        "not compared: 1 weight file that no index names, 1.0 MiB",
        "could not be compared",
    ):
        assert piece in shown


def test_a_lost_rank_is_named_beside_a_difference() -> None:
    headline = text(agreement_of([TINY, FLIPPED], absent={2: "silent"})).split("\n\n")[0]
    assert "rank 2 is absent" in " ".join(headline.split())


def test_given_facts_that_are_not_equal_are_listed_with_their_ranks() -> None:
    apart = Unequal(key="engine", values=(GivenValue(value="0.8", ranks=(0, 2)), GivenValue(value=None, ranks=(1,))))
    shown = text(msgspec.structs.replace(agreement_of([tiny(), tiny(), tiny()]), unequal=(apart,)))
    assert "given facts that are not equal\n    engine: 0.8 on [0,2]\n    engine: not given on [1]\n" in shown


def test_the_identity_alone_is_not_sold_as_more() -> None:
    shown = text(agreement_of([TINY, TINY], stage=Stage.IDENTITY))
    assert shown.startswith("UNDECIDED  the identities are equal; no tensor byte was read")


def test_equal_errors_of_many_ranks_are_one_line() -> None:
    shown = text(agreement_of([TINY.with_shard(S2, state=State.MISSING)] * 40))
    assert shown.count(f"{S2}: missing") == 3  # headline, evidence, errors
    assert "ranks [0-39]: " in shown


def test_many_differences_are_counted_and_not_scrolled_past() -> None:
    shards = {f"s{n:03}.safetensors": Shard(((f"t{n}", "1"), (f"u{n}", "1"))) for n in range(100)}
    other = {name: Shard((shard.tensors[0], (shard.tensors[1][0], "2"))) for name, shard in shards.items()}
    shown = text(agreement_of([Model(shards), Model(other)]))
    assert "in 100 of 100 weight files" in shown
    assert "and 80 more files" in shown
    assert len(shown.splitlines()) < 200


def test_a_scan_shows_its_digests_whole_and_a_line_for_each_file() -> None:
    result = scan_of(TINY)
    shown = scan_text(result, NOW)
    checked(shown)
    assert shown.startswith("DONE  0/2 cached, 0.0 GiB read, 0.0 s\n")
    for piece in (result.identity, result.content, result.content_sha256, S1, S2, "config.json", "read"):
        assert piece is not None
        assert piece in shown


def test_the_minority_is_listed_before_those_it_differs_from() -> None:
    lines = [line.split() for line in text(agreement_of([TINY, TINY, TINY, FLIPPED, TINY])).splitlines()]
    groups = [words[:2] for words in lines if words[:1] in (["A"], ["B"])]
    assert groups[:4] == [["B", "[3]"], ["A", "[0-2,4]"], ["B", "1"], ["A", "4"]]


def test_what_needs_somebody_comes_first_and_is_named_in_the_headline() -> None:
    finding = Finding(code="truncated", severity=Severity.ERROR, message=f"{S2}: 5 bytes short", file=S2)
    note = Finding(code="total-size", severity=Severity.NOTE, message="the index says 1 byte")
    result = scan_of(TINY.with_shard(S2, state=State.TRUNCATED).but(findings=(note, finding)))
    shown = scan_text(result, NOW)
    checked(shown)
    assert shown.startswith("DAMAGED  1 shard truncated; ")
    assert "content     not known" in shown
    assert shown.index("✗  truncated") < shown.index("✓  good")
    assert shown.index("error    model-00002") < shown.index("note     the index")


def absent(code: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(code=code, severity=severity, message="1 file that SHA256SUMS records is not here: x")


@pytest.mark.parametrize(
    ("result", "word"),
    [
        (scan_of(TINY), "DONE"),
        (scan_of(recorded(TINY)), "VERIFIED"),
        (scan_of(recorded(FLIPPED, breaks=[S2])), "DAMAGED"),
        (scan_of(TINY.with_shard(S2, state=State.UNREADABLE)), "UNDECIDED"),
        (scan_of(recorded(TINY).with_shard(S1, claims=())), "DONE"),
        (scan_of(TINY, findings=(absent("expected-missing"), absent("unexpected"))), "MISSING"),
        (scan_of(TINY, findings=(absent("unexpected"),)), "EXTRA"),
        (scan_of(TINY, findings=(absent("unexpected"), absent("missing-tensor"))), "DAMAGED"),
        (scan_of(recorded(FLIPPED, breaks=[S2]), findings=(absent("unexpected"),)), "DAMAGED"),
        (scan_of(TINY, findings=(absent("unexpected", Severity.WARNING),)), "DONE"),
    ],
)
def test_the_word_says_how_a_scan_ended(result: ScanResult, word: str) -> None:
    assert words.scan_word(result) == word


def test_plain_ascii_where_it_is_asked_for() -> None:
    assert scan_text(scan_of(TINY.with_shard(S2, state=State.TRUNCATED)), NOW, ascii_only=True).isascii()


def test_columns_are_measured_as_a_terminal_shows_them() -> None:
    assert width("модель") == 6
    assert width("模型") == 4
    assert width("e\u0301") == 1
    lines = table([["模型", "1"], ["ab", "22"]], "<>", indent=0)
    assert [width(line) for line in lines] == [8, 8]


def test_a_cell_that_is_too_wide_pushes_its_own_row_alone() -> None:
    lines = table([["x" * 255, "1"], ["y", "2"]], "<<", indent=0)
    assert len(lines[1]) < WIDTH


def test_long_names_are_never_broken() -> None:
    name = "n" * 150
    assert any(line.strip() == name for line in wrapped("A  ", f"the file {name} is cut"))
