"""Each fault, put into a real model, gets its cause; what merely looks like it does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ckpt_tui
from ckpt_tui.facts.agreement import Agreement, Cause, CauseCode, Difference
from ckpt_tui.facts.drill import Reread
from ckpt_tui.facts.settings import ScanSettings
from tests.support import faults
from tests.support.faults import S2

SETTINGS = ScanSettings(use_cache=False, threads=1)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faults.write_model(tmp_path_factory.mktemp("model") / "good")


@pytest.fixture
def bad(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "bad")
    return tmp_path / "bad"


def compared(*folders: Path, **settings: int) -> Agreement:
    return ckpt_tui.compare(*folders, settings=SETTINGS, **settings)


def difference(agreement: Agreement, name: str = S2) -> Difference:
    return next(one for one in agreement.differences if one.file == name)


def cause(agreement: Agreement, name: str = S2) -> Cause:
    return difference(agreement, name).cause


EXPECTED = {
    "flip_a_bit": (CauseCode.BIT_FLIP, "1 bit in 1 byte"),
    "flip_a_byte": (CauseCode.BIT_FLIP, "8 bits in 1 byte"),
    "stick_a_bit": (CauseCode.BIT_FLIP, "40 bits in 40 bytes, always bit 3"),
    "zero_a_page": (CauseCode.ZERO_RUN, "4,096 bytes of zeros in B from byte"),
    "zero_some_bytes": (CauseCode.ZERO_RUN, "1,000 bytes of zeros in B from byte"),
    "punch_a_hole": (CauseCode.ZERO_RUN, "16,384 bytes of zeros in B from byte"),
    "zero_the_tail": (CauseCode.ZERO_TAIL, "to the end, 36,864 bytes"),
    "foreign_block": (CauseCode.DAMAGED_RUN, "4,096 bytes at byte"),
    "foreign_bytes": (CauseCode.DAMAGED_RUN, "3,000 bytes at byte"),
    "cut_the_tail": (CauseCode.TRUNCATED, "shorter than its header needs"),
    "append_bytes": (CauseCode.OVERLONG, "bytes follow the last tensor"),
    "leave_a_pointer": (CauseCode.LFS_POINTER, "git-lfs"),
    "leave_a_page_of_html": (CauseCode.UNKNOWN, "broken where others are good"),
    "swap_shards": (CauseCode.RESHARDED, "are swapped"),
    "copy_another_shard": (CauseCode.TENSOR_REPLACED, f"the bytes of {faults.S1} under this name"),
    "swap_tensors": (CauseCode.TENSOR_REPLACED, "layers.2.attn.weight and layers.2.attn2.weight are swapped"),
    "write_another_seed": (CauseCode.EVERYTHING_DIFFERS, "every tensor differs"),
    "quantize": (CauseCode.EVERYTHING_DIFFERS, "another quantization"),
    "pad_the_header": (CauseCode.HEADER_ONLY, "the header differs"),
    "tune_a_layer": (CauseCode.TENSOR_REPLACED, "other values all over 5 tensors"),
    "nudge_a_tensor": (CauseCode.TENSOR_REPLACED, "other values all over 1 tensor"),
    "tune_two_rows": (CauseCode.TENSOR_REPLACED, "2 whole rows"),
    "zero_a_row": (CauseCode.TENSOR_REPLACED, "other values in 1 whole row"),
    "zero_a_tensor": (CauseCode.TENSOR_REPLACED, "other values all over 1 tensor"),
    "prune": (CauseCode.TENSOR_REPLACED, "other values all over 1 tensor"),
    "swap_endianness": (CauseCode.TENSOR_REPLACED, "other values all over"),
    "remove_a_shard": (CauseCode.MISSING, "not there"),
}


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_gets_its_cause(good: Path, bad: Path, fault: str) -> None:
    getattr(faults, fault)(bad, good)
    found = cause(compared(good, bad))
    code, words = EXPECTED[fault]
    assert found.code is code, found
    assert words in found.summary
    assert not found.candidate


def test_the_facts_say_which_element_which_bit_and_that_it_was_read_twice(good: Path, bad: Path) -> None:
    faults.flip_a_bit(bad, good)
    facts = cause(compared(good, bad)).facts
    assert "layers.2.attn.weight [1, 89]: A 0.006714 (0x3bdc), B -0.006714 (0xbbdc), bit 15" in facts
    assert f"the other {(bad / S2).stat().st_size - 1:,} bytes are equal" in facts
    assert "read twice, the same" in facts


@pytest.mark.parametrize(
    ("fault", "fact"),
    [
        ("zero_a_page", "whole pages of 4,096 bytes"),
        ("punch_a_hole", "whole pages of 4,096 bytes"),
        ("zero_some_bytes", "not at borders of pages"),
        ("foreign_block", "whole pages of 4,096 bytes"),
        ("foreign_bytes", "not at borders of pages"),
        ("swap_endianness", "an endianness swap: each element's bytes are in the other order"),
        ("quantize", "layers.2.mlp.weight: F32 [256, 256] / U8 [256, 256]"),
    ],
)
def test_facts_tell_what_kind_of_damage_it_is(good: Path, bad: Path, fault: str, fact: str) -> None:
    getattr(faults, fault)(bad, good)
    assert fact in cause(compared(good, bad)).facts


def test_other_shards_of_the_same_weights_are_resharded(good: Path, bad: Path) -> None:
    faults.shard_otherwise(bad, good)
    found = compared(good, bad)
    assert {one.cause.code for one in found.differences} == {CauseCode.RESHARDED}
    assert found.weights_equal


# Near misses.


def test_flips_all_over_the_place_are_no_few_bits(good: Path, bad: Path) -> None:
    start, _ = faults.places(bad / S2)["layers.2.mlp.weight"]
    for number in range(9):
        faults.xor(bad / S2, start + 20_000 * number, bytes([1 << number % 8]))
    found = cause(compared(good, bad))
    assert found.code is CauseCode.UNKNOWN
    assert "B: 9 bytes in 9 places" in found.facts


def test_one_zero_element_is_no_run_of_zeros(good: Path, bad: Path) -> None:
    faults.put(bad / S2, faults.page(bad / S2) + 4, bytes(4))
    assert cause(compared(good, bad)).code is CauseCode.DAMAGED_RUN


@pytest.mark.parametrize("fault", ["zero_a_page", "zero_the_tail"])
def test_zeros_beside_other_damage_are_not_all_of_it(good: Path, bad: Path, fault: str) -> None:
    getattr(faults, fault)(bad, good)
    faults.xor(bad / S2, faults.places(bad / S2)["layers.2.mlp.weight"][0], b"\x01")
    found = cause(compared(good, bad))
    assert found.code is CauseCode.DAMAGED_RUN
    assert "2 stretches" in found.summary


def test_a_counter_with_another_value_is_no_flipped_bit(tmp_path: Path) -> None:
    for name, steps in (("one", 1), ("other", 2)):
        tensors = faults.shard_tensors(1)
        tensors["steps"] = ("I64", (1,), steps.to_bytes(8, "little"))
        (tmp_path / name).mkdir()
        faults.write_shard(tmp_path / name, "model.safetensors", tensors)
    found = cause(compared(tmp_path / "one", tmp_path / "other"), "model.safetensors")
    assert found.code is CauseCode.TENSOR_REPLACED
    assert "steps [0]: A 1 (0x0000000000000001), B 2 (0x0000000000000002), bits 0, 1" in found.facts


def test_another_header_beside_another_tensor_is_not_header_only(good: Path, bad: Path) -> None:
    faults.pad_the_header(bad, good)
    faults.flip_a_bit(bad, good)
    assert cause(compared(good, bad)).code is not CauseCode.HEADER_ONLY


def test_equal_bytes_under_another_dtype_or_shape_are_said(tmp_path: Path) -> None:
    for name, kind in (("one", ("F16", (2, 3))), ("other", ("BF16", (2, 3))), ("third", ("F16", (3, 2)))):
        tensors = faults.shard_tensors(1) | {"x": (*kind, bytes(range(12)))}
        (tmp_path / name).mkdir()
        faults.write_shard(tmp_path / name, "model.safetensors", tensors)
    dtype = cause(compared(tmp_path / "one", tmp_path / "other"), "model.safetensors")
    assert dtype.code is CauseCode.TENSOR_REPLACED
    assert "x: F16 [2, 3] / BF16 [2, 3], the bytes are equal" in dtype.facts
    shape = cause(compared(tmp_path / "one", tmp_path / "third"), "model.safetensors")
    assert "x: F16 [2, 3] / F16 [3, 2], the bytes are equal" in shape.facts


# More than two groups, and what is not at hand.


def test_of_three_groups_each_is_told_against_the_right_one(good: Path, tmp_path: Path) -> None:
    folders = []
    for name, fault in (("b", faults.flip_a_bit), ("c", faults.zero_a_page)):
        shutil.copytree(good, tmp_path / name)
        fault(tmp_path / name, good)
        folders.append(tmp_path / name)
    copies = [tmp_path / "d", tmp_path / "e"]
    for copy in copies:
        shutil.copytree(good, copy)
    agreement = compared(folders[0], folders[1], *copies, good)
    found = difference(agreement)
    assert [group.ranks for group in agreement.groups] == [(0,), (1,), (2, 3, 4)]
    assert found.cause.code is CauseCode.ZERO_RUN
    assert "A: bit-flip, 1 bit in 1 byte" in found.cause.facts
    assert found.cause.mend.endswith(f"/c/{S2}")
    assert any(fact.startswith("B: zero-run, 4,096 bytes of zeros in B") for fact in found.cause.facts)
    drills = {segment.name: segment.drill for segment in found.segments}
    assert {drill.reference for drill in drills.values() if drill} == {"C"}
    one = drills["layers.2.attn.weight"]
    assert one is not None
    assert [(side.side, side.bytes) for side in one.sides] == [("A", 1)]
    assert one.read_again == {"A": True, "C": True}


def test_without_a_budget_nothing_is_read_again_and_nothing_is_claimed(good: Path, bad: Path) -> None:
    faults.flip_a_bit(bad, good)
    found = difference(compared(good, bad, drill_bytes=0))
    assert (found.cause.code, found.segments[0].drill) == (CauseCode.UNKNOWN, None)


def big_pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two copies of a file with one tensor of five leaves, and a small one before and behind it."""
    rows = faults.values("row", "F32", (256, 1024))
    tensors = {
        "first": ("F32", (64,), faults.values("first", "F32", (64,))),
        "big": ("F32", (1200, 1024), (rows * 5)[: 1200 * 4096]),
        "last": ("F32", (64,), faults.values("last", "F32", (64,))),
    }
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        faults.write_shard(tmp_path / name, "model.safetensors", tensors)
    return tmp_path / "good", tmp_path / "bad"


def test_only_leaves_that_differ_are_read(tmp_path: Path) -> None:
    good, bad = big_pair(tmp_path)
    path = bad / "model.safetensors"
    start, _ = faults.places(path)["big"]
    faults.xor(path, start + 3 * (1 << 20) + 5, b"\x10")
    found = difference(compared(good, bad), path.name)
    drill = found.segments[0].drill
    assert drill is not None
    assert (drill.leaves, drill.leaves_differing, drill.sides[0].compared) == (5, 1, 1 << 20)
    assert found.cause.code is CauseCode.BIT_FLIP
    assert drill.sides[0].first is not None
    assert drill.sides[0].first.offset == start + 3 * (1 << 20) + 5


def test_zeros_that_were_not_read_are_known_by_their_digests(tmp_path: Path) -> None:
    good, bad = big_pair(tmp_path)
    path = bad / "model.safetensors"
    start, _ = faults.places(path)["big"]
    size = path.stat().st_size
    faults.put(path, start + 100, bytes(size - start - 100))
    found = difference(compared(good, bad, drill_bytes=3 << 20), path.name)
    side = next(one.drill.sides[0] for one in found.segments if one.drill and one.name == "big")
    assert side.not_read == side.zeros_not_read > 0
    assert found.cause.code is CauseCode.ZERO_TAIL
    assert f"from byte {start + 100:,} to the end" in found.cause.summary
    assert not found.cause.candidate


def test_what_the_budget_left_out_is_counted_and_no_few_bits_are_claimed(tmp_path: Path) -> None:
    good, bad = big_pair(tmp_path)
    path = bad / "model.safetensors"
    start, _ = faults.places(path)["big"]
    for leaf in range(5):
        faults.xor(path, start + leaf * (1 << 20) + 5, b"\x10")
    found = difference(compared(good, bad, drill_bytes=2 << 20), path.name)
    drill = found.segments[0].drill
    assert drill is not None
    assert drill.sides[0].not_read == 3 << 20
    assert found.cause.code is not CauseCode.BIT_FLIP
    assert cause(compared(good, bad), path.name).code is CauseCode.BIT_FLIP


def test_a_file_without_tensors_that_ends_early_is_the_beginning_of_the_other(tmp_path: Path) -> None:
    body = b"GGUF" + faults.values("gguf", "U8", (17 << 20,))
    for name, length in (("one", len(body)), ("other", len(body) - 777)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.gguf").write_bytes(body[:length])
    found = cause(compared(tmp_path / "one", tmp_path / "other"), "model.gguf")
    assert found.code is CauseCode.TRUNCATED
    assert "B is the beginning of the other, 777 bytes short" in found.summary
    faults.xor(tmp_path / "other" / "model.gguf", 5000, b"\x01")
    assert cause(compared(tmp_path / "one", tmp_path / "other"), "model.gguf").code is not CauseCode.TRUNCATED


def test_a_flipped_bit_of_a_file_without_tensors_has_its_byte(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.gguf").write_bytes(b"GGUF" + faults.values("gguf", "U8", (1000,)))
    faults.xor(tmp_path / "other" / "model.gguf", 500, b"\x04")
    found = cause(compared(tmp_path / "one", tmp_path / "other"), "model.gguf")
    assert found.code is CauseCode.BIT_FLIP
    assert any(fact.startswith("extent, byte 500: A (0x") and fact.endswith("bit 2") for fact in found.facts)


def test_other_bytes_under_the_same_stat_accuse_the_machine(
    good: Path, bad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.flip_a_bit(bad, good)
    from ckpt_tui.digest import Scanner

    honest = Scanner.read_again
    shown = []

    def read_again(self: Scanner, name: str, offset: int, length: int) -> Reread:
        shown.append(name)
        data, doubt = honest(self, name, offset, length)
        return Reread(data if len(shown) > 1 else bytes([data[0] ^ 1]) + data[1:], doubt)

    monkeypatch.setattr(Scanner, "read_again", read_again)
    found = difference(compared(good, bad))
    assert found.cause.code is CauseCode.UNSTABLE_READ
    assert "read again, A gave other bytes than before" in found.cause.summary
    assert found.cause.mend == ""


def test_a_file_that_changed_since_it_was_hashed_is_not_looked_into(
    good: Path, bad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.flip_a_bit(bad, good)
    from ckpt_tui.digest import Scanner

    honest = Scanner.leaves

    def leaves(self: Scanner, name: str) -> tuple[bytes, ...]:
        faults.flip_a_byte(bad, good)
        return honest(self, name)

    monkeypatch.setattr(Scanner, "leaves", leaves)
    found = difference(compared(good, bad))
    drill = found.segments[0].drill
    assert drill is not None
    assert drill.sides == ()
    assert "changed since it was hashed" in drill.errors["B"]
    assert found.cause.code is CauseCode.UNKNOWN


def test_a_tensor_that_one_side_lacks_is_part_of_what_differs(tmp_path: Path) -> None:
    for name in ("one", "other", "third"):
        tensors = faults.shard_tensors(1) | {"more": ("U8", (64,), bytes(range(64)))}
        (tmp_path / name).mkdir()
        if name == "other":
            del tensors["more"]
        faults.write_shard(tmp_path / name, "model.safetensors", tensors)
    for name in ("other", "third"):
        path = tmp_path / name / "model.safetensors"
        faults.xor(path, faults.places(path)["layers.1.scale"][0], b"\x01")
    folders = [tmp_path / name for name in ("one", "other", "third")]
    assert cause(compared(*folders[:2]), "model.safetensors").code is not CauseCode.BIT_FLIP
    found = cause(compared(*folders), "model.safetensors")
    assert found.code is CauseCode.BIT_FLIP
    assert "the other" in " ".join(found.facts)


def test_a_zero_tail_may_hold_a_tensor_that_is_zero_everywhere(tmp_path: Path) -> None:
    tensors = {f"{place}.w": ("F32", (64, 64), faults.values(f"{place}", "F32", (64, 64))) for place in range(20)}
    tensors["17.w"] = ("F32", (1, 64), bytes(256))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        faults.write_shard(tmp_path / name, "model.safetensors", tensors)
    path = tmp_path / "other" / "model.safetensors"
    size = path.stat().st_size
    faults.put(path, size - 60_001, bytes(60_001))
    found = cause(compared(tmp_path / "one", tmp_path / "other"), path.name)
    assert found.code is CauseCode.ZERO_TAIL
    faults.put(path, size - 60_001, (tmp_path / "one" / path.name).read_bytes()[-60_001:-20_000])
    faults.put(path, 30_000, bytes(900))
    found = cause(compared(tmp_path / "one", tmp_path / "other"), path.name)
    assert found.code is CauseCode.ZERO_RUN


def test_a_fault_in_a_real_model_is_told_by_its_byte(minilm_folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    shutil.copytree(minilm_folder, bad)
    path = bad / "model.safetensors"
    settings = ScanSettings(cache_dir=str(tmp_path / "cache"))
    size, start = path.stat().st_size, faults.places(path)["embeddings.word_embeddings.weight"][0]
    held = path.read_bytes()
    page = start // faults.PAGE * faults.PAGE + 7 * faults.PAGE
    for code, offset, data in (
        (CauseCode.BIT_FLIP, start + 12345, bytes([held[start + 12345] ^ 0x10])),
        (CauseCode.ZERO_RUN, page, bytes(3 << 20)),
        (CauseCode.ZERO_TAIL, size - (9 << 20), bytes(9 << 20)),
        (CauseCode.DAMAGED_RUN, page, held[-faults.PAGE :]),
    ):
        faults.put(path, offset, data)
        found = ckpt_tui.compare(minilm_folder, bad, settings=settings).differences[0].cause
        assert found.code is code, found
        assert not found.candidate
        faults.put(path, offset, held[offset : offset + len(data)])
