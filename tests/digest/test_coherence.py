"""A saved scan whose rows were edited no longer speaks for a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ckpt_tui.digest.coherence import contradiction
from ckpt_tui.facts.scan import ScanResult

Scan = Callable[..., ScanResult]


def weights(built: dict[str, Any]) -> dict[str, Any]:
    return next(file for file in built["files"] if file["role"] == "weights")


def sidecar(built: dict[str, Any]) -> dict[str, Any]:
    return next(file for file in built["files"] if file["role"] == "sidecar")


@pytest.mark.parametrize("settings", [{}, {"sha256": False}, {"segments": True}, {"identity_only": True}])
def test_a_scan_as_it_was_made_is_coherent(settings: dict[str, Any], folder: Path, scanned: Scan) -> None:
    assert contradiction(scanned(folder, **settings)) is None


def test_a_name_that_is_no_utf8_counts_by_its_bytes(tmp_path: Path, scanned: Scan, folder: Path) -> None:
    for number, shard in enumerate(sorted(folder.glob("*.safetensors"))):
        (tmp_path / "odd").mkdir(exist_ok=True)
        (tmp_path / "odd" / f"a\udcff\n{number}.safetensors").write_bytes(shard.read_bytes())
    assert contradiction(scanned(tmp_path / "odd")) is None


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda built: weights(built).update(name="other.safetensors"), "content"),
        (lambda built: weights(built).update(size=weights(built)["size"] + 1), "content"),
        (lambda built: weights(built).update(digest="0" * 32), "content"),
        (lambda built: weights(built).update(digest=None), "digests that are none"),
        (lambda built: weights(built).update(digest="no hex"), "digests that are none"),
        (lambda built: weights(built).update(sha256="0" * 64), "content_sha256"),
        (lambda built: weights(built).update(state="extra"), "content"),
        (lambda built: built.update(files=[file for file in built["files"] if file is not weights(built)]), "content"),
        (lambda built: built.update(content="0" * 64), "content"),
        (lambda built: sidecar(built).update(name="other.json"), "sidecars"),
        (lambda built: weights(built)["segment_table"][1].update(digest="0" * 32), "segments"),
        (lambda built: weights(built)["segment_table"][1].update(name="other"), "segments"),
        (lambda built: weights(built)["segment_table"][1].update(length=-1), "digests that are none"),
    ],
)
def test_an_edit_is_found_out(edit: Callable[[dict[str, Any]], Any], words: str, folder: Path, scanned: Scan) -> None:
    built = msgspec.to_builtins(scanned(folder, segments=True))
    edit(built)
    assert words in (contradiction(msgspec.convert(built, ScanResult)) or "")


def test_another_layout_is_told_by_its_number_and_not_by_its_digests(folder: Path, scanned: Scan) -> None:
    built = msgspec.to_builtins(scanned(folder))
    built.update(digest_layout=2, content="0" * 64)
    assert contradiction(msgspec.convert(built, ScanResult)) is None
