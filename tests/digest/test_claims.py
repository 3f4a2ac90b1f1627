"""Recorded hashes of a hub cache that `huggingface_hub` wrote, settled by the scan's one read and by its cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ckpt_tui.facts.files import Role, Severity, State
from ckpt_tui.facts.outcome import Exit, scan_code
from ckpt_tui.facts.scan import CheckpointKind, ScanResult
from tests.digest.conftest import named
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.hub import COMMIT, download, hub

Scan = Callable[..., ScanResult]
REPO = "synth/tiny"
SHARD = "model-00002-of-00002.safetensors"


@pytest.fixture(scope="module")
def downloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub home with one repo in its cache."""
    root = tmp_path_factory.mktemp("hub")
    folder = write_checkpoint(root / "source")
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    with hub(REPO, files) as address:
        download(address, root / "home", repo_id=REPO)
    return root / "home" / "hub"


@pytest.fixture
def damaged(downloaded: Path) -> Iterator[Path]:
    """The same with one bit flipped in a shard's blob, mended afterwards."""
    blob = next(downloaded.rglob(f"snapshots/{COMMIT}/{SHARD}")).resolve()
    blob.chmod(0o644)
    flip_bit(blob, payload_offset(blob), keep_mtime=True)
    yield downloaded
    flip_bit(blob, payload_offset(blob), keep_mtime=True)


def test_every_recorded_hash_is_kept_cold_and_warm(downloaded: Path, scanned: Scan) -> None:
    for _ in range(2):
        result = scanned(REPO, hub_cache=str(downloaded))
        assert result.checkpoint.kind is CheckpointKind.HUB_SNAPSHOT
        assert (result.checkpoint.repo_id, result.checkpoint.revision) == (REPO, COMMIT)
        for file in result.files:
            assert file.claims
            assert {claim.holds for claim in file.claims} == {True}
            algorithms = {claim.algorithm for claim in file.claims}
            assert ("sha256" if file.role is Role.WEIGHTS else "git-sha1") in algorithms
    assert result.totals.bytes_read == 0
    assert scan_code(result) is Exit.SAME


def test_bytes_that_break_a_recorded_hash_are_a_mismatch_cold_and_warm(damaged: Path, scanned: Scan) -> None:
    for _ in range(2):
        result = scanned(REPO, hub_cache=str(damaged))
        file = named(result, SHARD)
        assert file.state is State.DIGEST_MISMATCH
        assert {claim.holds for claim in file.claims} == {False}
        assert [found.file for found in result.findings if found.severity is Severity.ERROR] == [SHARD]
        assert result.content, "the bytes are known, and so is that they are wrong"
        assert scan_code(result) is Exit.DIFFERENT
    assert result.totals.bytes_read == 0


def test_fast_leaves_recorded_sha256_open_unless_the_cache_knows_better(damaged: Path, scanned: Scan) -> None:
    fast = scanned(REPO, hub_cache=str(damaged), sha256=False)
    file = named(fast, SHARD)
    assert (file.state, {claim.holds for claim in file.claims}) == (State.GOOD, {None})
    scanned(REPO, hub_cache=str(damaged))
    again = scanned(REPO, hub_cache=str(damaged), sha256=False)
    assert again.totals.bytes_read == 0
    assert named(again, SHARD).state is State.DIGEST_MISMATCH
    assert again.content_sha256 is None
