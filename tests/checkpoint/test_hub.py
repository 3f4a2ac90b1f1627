"""Hub caches as `huggingface_hub` itself writes them: found by every name, checked against what the hub recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ckpt_tui.checkpoint import locate
from ckpt_tui.digest import scan
from ckpt_tui.facts.files import State
from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.facts.scan import CheckpointKind
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.hub import COMMIT, download, etag, hub

if TYPE_CHECKING:
    from ckpt_tui.facts.files import FileResult

REPO = "acme/tiny"
SHARD = "model-00002-of-00002.safetensors"
PLAIN = ScanSettings(use_cache=False, threads=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The repo's files."""
    folder = write_checkpoint(tmp_path_factory.mktemp("repo"))
    return {path.name: path.read_bytes() for path in folder.iterdir()} | {"README.md": b"# tiny\n"}


@pytest.fixture
def cache(files: dict[str, bytes], tmp_path: Path) -> Path:
    """A hub cache that holds the repo."""
    with hub(REPO, files) as address:
        download(address, tmp_path / "home", repo_id=REPO)
    return tmp_path / "home" / "hub"


def claims(file: FileResult) -> dict[str, bool | None]:
    return {f"{claim.kind} {claim.algorithm}": claim.holds for claim in file.claims}


@pytest.mark.parametrize("target", ["acme/tiny", "acme/tiny@main", f"acme/tiny@{COMMIT}"])
def test_a_repo_is_found_by_its_id_and_keeps_what_the_hub_recorded(cache: Path, target: str) -> None:
    result = scan(target, ScanSettings(use_cache=False, threads=1, hub_cache=str(cache)))
    assert result.checkpoint.kind is CheckpointKind.HUB_SNAPSHOT
    assert (result.checkpoint.repo_id, result.checkpoint.revision) == (REPO, COMMIT)
    assert result.findings == ()
    assert {file.name: claims(file) for file in result.files} == {
        "config.json": {"hub-blob git-sha1": True, "hub-tree git-sha1": True},
        "model-00001-of-00002.safetensors": {"hub-blob sha256": True, "hub-tree sha256": True},
        "model-00002-of-00002.safetensors": {"hub-blob sha256": True, "hub-tree sha256": True},
        "model.safetensors.index.json": {"hub-blob git-sha1": True, "hub-tree git-sha1": True},
        "tokenizer.json": {"hub-blob git-sha1": True, "hub-tree git-sha1": True},
    }


@pytest.mark.parametrize("below", ["models--acme--tiny", f"models--acme--tiny/snapshots/{COMMIT}"])
def test_its_folders_name_the_same_snapshot(cache: Path, below: str) -> None:
    found = locate(str(cache / below))
    assert found.ref.kind is CheckpointKind.HUB_SNAPSHOT
    assert (found.ref.repo_id, found.ref.revision) == (REPO, COMMIT)
    assert len(found.weights) == 2


def test_the_environment_says_where_the_cache_is(cache: Path) -> None:
    code = "import sys; from ckpt_tui.checkpoint import locate; print(locate('acme/tiny').ref.revision)"
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE_"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=keep | {"HF_HOME": str(cache.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == COMMIT


def test_a_flipped_bit_breaks_every_record(cache: Path, files: dict[str, bytes]) -> None:
    blob = cache / "models--acme--tiny" / "blobs" / etag(SHARD, files[SHARD])
    flip_bit(blob, payload_offset(blob), keep_mtime=True)
    result = scan(str(cache / "models--acme--tiny"), PLAIN)
    states = {file.name: file.state for file in result.files}
    assert states[SHARD] is State.DIGEST_MISMATCH
    assert [name for name, state in states.items() if state is not State.GOOD] == [SHARD]


def test_a_short_blob_is_known_by_the_listing_before_it_is_read(cache: Path, files: dict[str, bytes]) -> None:
    blob = cache / "models--acme--tiny" / "blobs" / etag("tokenizer.json", files["tokenizer.json"])
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-3])
    found = locate(str(cache / "models--acme--tiny"))
    assert next(file for file in found.files if file.name == "tokenizer.json").state is State.TRUNCATED


def test_a_local_dir_download_keeps_its_notes_until_a_file_is_written(files: dict[str, bytes], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with hub(REPO, files) as address:
        download(address, tmp_path / "home", repo_id=REPO, local_dir=str(folder))
    whole = {file.name: file for file in scan(str(folder), PLAIN).files}
    assert claims(whole[SHARD]) == {"download-metadata sha256": True, "hub-tree sha256": True}
    assert claims(whole["config.json"]) == {"download-metadata git-sha1": True, "hub-tree git-sha1": True}
    flip_bit(folder / SHARD, payload_offset(folder / SHARD), keep_mtime=True)
    edited = folder / "config.json"
    edited.write_text(edited.read_text() + "\n")
    later = edited.stat().st_mtime + 60
    os.utime(edited, (later, later))
    result = scan(str(folder), PLAIN)
    states = {file.name: file.state for file in result.files}
    assert states[SHARD] is State.DIGEST_MISMATCH
    assert states["config.json"] is State.GOOD
    assert "record-stale" in {finding.code for finding in result.findings}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("acme/other", "hf download acme/other"),
        ("acme/tiny@v2", "knows no revision v2"),
        (f"acme/tiny@{'f' * 40}", "is not in the hub cache"),
        ("acme/tiny@../../x", "knows no revision"),
    ],
)
def test_what_the_cache_does_not_hold_is_said_in_words(cache: Path, target: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        locate(target, hub_cache=str(cache))


def test_a_hub_cache_itself_names_its_repos(cache: Path) -> None:
    with pytest.raises(UsageError, match="acme/tiny"):
        locate(str(cache))


def test_a_branch_that_holds_no_commit_is_said_in_words(cache: Path) -> None:
    (cache / "models--acme--tiny" / "refs" / "main").write_text("../../elsewhere")
    with pytest.raises(UsageError, match="holds no commit"):
        locate(REPO, hub_cache=str(cache))


def test_the_only_snapshot_is_taken_where_no_branch_is_known(cache: Path) -> None:
    (cache / "models--acme--tiny" / "refs" / "main").unlink()
    assert locate(REPO, hub_cache=str(cache)).ref.revision == COMMIT


def test_a_path_wins_over_a_repo_id(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path / "acme" / "tiny")
    monkeypatch.chdir(tmp_path)
    assert locate(REPO, hub_cache=str(cache)).ref.kind is CheckpointKind.FOLDER


def test_a_snapshot_copied_with_absolute_links_still_knows_its_blobs(cache: Path, tmp_path: Path) -> None:
    snapshot = cache / "models--acme--tiny" / "snapshots" / COMMIT
    farm = tmp_path / "farm"
    farm.mkdir()
    for path in snapshot.iterdir():
        (farm / path.name).symlink_to(path.resolve())
    result = scan(str(farm), PLAIN)
    shard = next(file for file in result.files if file.name == SHARD)
    assert claims(shard) == {"hub-blob sha256": True}
    assert {finding.code for finding in result.findings} == {"links-out"}
