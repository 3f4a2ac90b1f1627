"""What a git-lfs clone records, with real git and a filter that writes pointers as git-lfs does."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ckpt_tui.checkpoint import locate
from ckpt_tui.digest import scan
from ckpt_tui.facts.files import State
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from ckpt_tui.facts.files import FileResult

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

SHARD = "model-00002-of-00002.safetensors"
PLAIN = ScanSettings(use_cache=False, threads=1)
CLEAN = """
import hashlib, pathlib, sys
body = sys.stdin.buffer.read()
oid = hashlib.sha256(body).hexdigest()
place = pathlib.Path(".git/lfs/objects", oid[:2], oid[2:4], oid)
place.parent.mkdir(parents=True, exist_ok=True)
place.write_bytes(body)
sys.stdout.write(f"version https://git-lfs.github.com/spec/v1\\noid sha256:{oid}\\nsize {len(body)}\\n")
"""


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, timeout=60, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose weights git-lfs keeps, in a subfolder of the repository."""
    repository = tmp_path / "repository"
    write_checkpoint(repository / "model")
    git(repository, "init", "--quiet")
    (tmp_path / "clean.py").write_text(CLEAN)
    git(repository, "config", "filter.lfs.clean", f"{sys.executable} {tmp_path / 'clean.py'}")
    (repository / ".gitattributes").write_text("*.safetensors filter=lfs -text\n")
    git(repository, "add", ".")
    return repository / "model"


def shard(folder: Path) -> FileResult:
    return next(file for file in scan(str(folder), PLAIN).files if file.name == SHARD)


def test_a_clone_keeps_what_git_lfs_recorded(clone: Path) -> None:
    found = shard(clone)
    claim = found.claims[0]
    assert (claim.kind, claim.algorithm, claim.holds) == ("git-lfs", "sha256", True)
    assert claim.expected == hashlib.sha256((clone / SHARD).read_bytes()).hexdigest()


def test_a_bit_that_flipped_behind_gits_back_breaks_it(clone: Path) -> None:
    flip_bit(clone / SHARD, payload_offset(clone / SHARD), keep_mtime=True)
    assert shard(clone).state is State.DIGEST_MISMATCH


def test_a_file_that_was_written_since_is_not_held_against_it(clone: Path) -> None:
    flip_bit(clone / SHARD, payload_offset(clone / SHARD))
    later = (clone / SHARD).stat().st_mtime + 60
    os.utime(clone / SHARD, (later, later))
    found = locate(str(clone))
    assert {file.state for file in found.files} == {State.GOOD}
    assert "record-stale" in {finding.code for finding in found.findings}


def test_an_index_that_cannot_be_read_records_nothing(clone: Path) -> None:
    (clone.parent / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\7cut")
    assert shard(clone).claims == ()
