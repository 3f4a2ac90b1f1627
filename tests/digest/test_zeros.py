"""Zeros that were really written: told by digests, cold and warm, without reading a byte more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckpt_tui.digest.layout import segment_of
from ckpt_tui.digest.zeros import zeros_digest
from ckpt_tui.facts.files import FileResult, Source, State
from ckpt_tui.facts.outcome import Exit, scan_code
from ckpt_tui.facts.scan import ScanResult
from tests.support.checkpoints import noise, safetensors_bytes

Scan = Callable[..., ScanResult]
KIB, MIB = 1 << 10, 1 << 20


@settings(deadline=None)
@given(st.integers(0, 3 * MIB + 1))
def test_the_digest_of_zeros_is_that_of_a_segment_of_them(length: int) -> None:
    assert zeros_digest(length) == segment_of(bytes(length))


def write(folder: Path, *tensors: tuple[int, bool]) -> Path:
    """One shard of U8 tensors in this order: how long each is, and whether it is zero."""
    content = {
        f"layers.{place:02}.w": ("U8", (length,), bytes(length) if zero else noise(f"{place}", length))
        for place, (length, zero) in enumerate(tensors)
    }
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(safetensors_bytes(content, {"format": "pt"}))
    return folder


def shard(result: ScanResult) -> FileResult:
    return next(file for file in result.files if file.name == "model.safetensors")


FULL = (64 * KIB, False)


def test_a_file_that_was_never_finished_is_suspect_cold_and_warm(tmp_path: Path, scanned: Scan) -> None:
    folder = write(tmp_path / "model", FULL, FULL, *[(64 * KIB, True)] * 6)
    for source in (Source.READ, Source.CACHE):
        result = scanned(folder)
        found = shard(result)
        assert (found.source, found.state) == (source, State.SUSPECT)
        assert found.error is not None
        assert found.error.startswith("6 of 8 tensors are entirely zero")
        assert "393,216 bytes" in found.error
        assert found.error.endswith("to the end")
        assert [one.code for one in result.findings if one.file == found.name] == ["suspect"]
        assert (scan_code(result), scan_code(result, strict=True)) == (Exit.SAME, Exit.DIFFERENT)
        assert result.content is not None


@pytest.mark.parametrize(
    ("tensors", "state"),
    [
        pytest.param([FULL, (64, True)], State.GOOD, id="a small bias at the end"),
        pytest.param([FULL, (32 * KIB, True)], State.GOOD, id="a bias of a large model at the end"),
        pytest.param([FULL, (64 * KIB, True)], State.SUSPECT, id="a whole tensor at the end"),
        pytest.param([FULL, (64 * KIB, True), (64, False)], State.SUSPECT, id="and a small one after it"),
        pytest.param([FULL, (64 * KIB, True), FULL], State.GOOD, id="a tensor in the middle"),
        pytest.param([(2 * MIB, True), FULL, (2 * MIB, True), FULL], State.GOOD, id="an adapter before its training"),
        pytest.param([FULL, (MIB, True)] * 2, State.GOOD, id="an adapter before its training to its end"),
        pytest.param([FULL, (MIB, True), (MIB, True), FULL], State.SUSPECT, id="neighbours in the middle"),
        pytest.param([FULL, (16 * MIB, True), FULL], State.SUSPECT, id="a huge tensor in the middle"),
        pytest.param([(0, True), FULL, (0, True)], State.GOOD, id="tensors without bytes"),
        pytest.param([FULL, FULL], State.GOOD, id="no zeros"),
    ],
)
def test_zeros_are_suspect_where_nobody_would_write_them(
    tensors: list[tuple[int, bool]], state: State, tmp_path: Path, scanned: Scan
) -> None:
    assert shard(scanned(write(tmp_path / "model", *tensors))).state is state


def test_an_identity_is_not_given_for_a_cut_shard(folder: Path, scanned: Scan) -> None:
    assert scanned(folder).identity is not None
    path = folder / "model-00002-of-00002.safetensors"
    whole = path.read_bytes()
    for damaged in (whole[:-5], whole + b"xyz"):
        path.write_bytes(damaged)
        assert scanned(folder).identity is None
