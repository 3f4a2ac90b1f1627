"""Revisions and recorded hashes on snapshots that `huggingface_hub` itself has downloaded (cases R01, R02 and O08)."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckpt_tui
from ckpt_tui.facts.agreement import Agreement, CauseCode, Standing, Verdict
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.report.text import agreement_text
from tests.support.checkpoints import flip_bit, payload_offset, write_checkpoint
from tests.support.hub import download, hub

REPO = "acme/tiny"
A, B, C = ("a" * 40, "b" * 40, "c" * 40)
SHARD = "model-00002-of-00002.safetensors"
TENSOR = "model.layers.2.mlp.0.weight"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub cache with three revisions: A, B with one other tensor, C like A but for its README."""
    home = tmp_path_factory.mktemp("home")
    folder = write_checkpoint(tmp_path_factory.mktemp("repo"))
    files = {path.name: path.read_bytes() for path in folder.iterdir()} | {"README.md": b"# tiny\n"}
    flip_bit(folder / SHARD, payload_offset(folder / SHARD))
    revisions = {A: files, B: {**files, SHARD: (folder / SHARD).read_bytes()}, C: {**files, "README.md": b"# other\n"}}
    for revision, held in revisions.items():
        with hub(REPO, held, revision) as address:
            download(address, home, repo_id=REPO)
    return home


def compared(home: Path, *targets: str | Path) -> Agreement:
    return ckpt_tui.compare(*targets, settings=ScanSettings(use_cache=False, threads=1, hub_cache=str(home / "hub")))


def plain_copy(home: Path, revision: str, target: Path) -> Path:
    """The files of a snapshot without anything that tells where they are from."""
    target.mkdir()
    for path in (home / "hub" / "models--acme--tiny" / "snapshots" / revision).iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_two_revisions_differ_in_the_tensor_that_does_and_neither_is_wrong(home: Path) -> None:
    """Case R01 a."""
    agreement = compared(home, f"{REPO}@{A}", f"{REPO}@{B}")
    assert agreement.verdict is Verdict.DIFFER
    assert {group.standing for group in agreement.groups} == {Standing.UNDECIDED}
    (difference,) = agreement.differences
    assert difference.cause.code is CauseCode.OTHER_REVISION
    assert not difference.cause.candidate
    assert (difference.file, [segment.name for segment in difference.segments]) == (SHARD, [TENSOR])
    shown = " ".join(agreement_text(agreement, agreement.created).split())
    one, other = f"aaaaaaaaaaaa ({REPO}@{A[:12]})", f"bbbbbbbbbbbb ({REPO}@{B[:12]})"
    assert shown.startswith(f"DIFFER revision {one} / {other}: in 1 of 2 weight files")


def test_revisions_of_equal_weights_agree_with_a_warning(home: Path) -> None:
    """Case R01 b."""
    agreement = compared(home, f"{REPO}@{A}", f"{REPO}@{C}")
    assert agreement.verdict is Verdict.AGREE
    assert len(agreement.warnings) == 1
    assert "revision aaaaaaaaaaaa (rank 0) / cccccccccccc (rank 1)" in agreement.warnings[0]
    assert agreement.groups[0].copies == 1, "the hub cache keeps equal files once"


def test_a_plain_copy_has_no_revision_to_compare(home: Path, tmp_path: Path) -> None:
    """Case R01 c."""
    agreement = compared(home, f"{REPO}@{A}", plain_copy(home, A, tmp_path / "copy"))
    assert (agreement.verdict, agreement.warnings) == (Verdict.AGREE, ())


def test_the_side_that_breaks_the_hubs_hash_is_wrong(home: Path, tmp_path: Path) -> None:
    """Cases R02, with one side's recorded hash; O08 b."""
    with hub(REPO, {p.name: p.read_bytes() for p in plain_copy(home, A, tmp_path / "a").iterdir()}, A) as address:
        download(address, tmp_path / "other", repo_id=REPO)
    snapshot = tmp_path / "other" / "hub" / "models--acme--tiny" / "snapshots" / A
    flip_bit(snapshot / SHARD, payload_offset(snapshot / SHARD), keep_mtime=True)
    agreement = compared(home, f"{REPO}@{A}", snapshot)
    assert [(group.ranks, group.standing) for group in agreement.groups] == [
        ((0,), Standing.RIGHT),
        ((1,), Standing.WRONG),
    ]
    assert agreement.differences[0].cause.mend == f"hf download {REPO} {SHARD} --revision {A} --force-download"
    assert "breaks the hub's recorded hash" in agreement.groups[1].evidence[0]
    alone = compared(home, snapshot, plain_copy(home, B, tmp_path / "copy"))
    assert alone.groups[0].standing is Standing.WRONG
