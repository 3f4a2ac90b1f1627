"""The offline cases that are about more than one look: a cache in between, a change meanwhile, two copies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from ckpt_tui.digest import scan, validity
from ckpt_tui.facts.agreement import Verdict
from ckpt_tui.facts.files import Source, State
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from ckpt_tui.library import compare
from ckpt_tui.report.text import agreement_text
from tests.cases import make_cases
from tests.digest.conftest import SetClock
from tests.support.checkpoints import flip_bit, payload_offset
from tests.support.unprivileged import run_unprivileged

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = "model.safetensors"


@pytest.fixture
def case(tmp_path: Path) -> Callable[[str], Path]:
    """Writes one case into a folder of its own."""

    def write(cid: str) -> Path:
        folder = tmp_path / cid
        folder.mkdir()
        make_cases.CASES[cid].fn(folder, make_cases.CASES[cid])
        return folder

    return write


@pytest.fixture
def settings(tmp_path: Path) -> ScanSettings:
    """A cache of the test's own."""
    return ScanSettings(cache_dir=str(tmp_path / "cache"), threads=1)


def source(result: ScanResult) -> Source | None:
    return next(file.source for file in result.files if file.name == MODEL)


KINDS = ["inplace-keep-mtime", "replace-keep-mtime", "mmap-keep-mtime", "inode-reuse", "older-mtime"]


@pytest.mark.parametrize("kind", KINDS)
def test_o27_the_cache_notices_every_change_that_hides_from_size_and_mtime(
    kind: str, case: Callable[[str], Path], settings: ScanSettings
) -> None:
    folder = case("O27")
    before = scan(str(folder / "ckpt"), settings)
    assert source(scan(str(folder / "ckpt"), settings)) is Source.CACHE
    words = [sys.executable, str(folder / "mutate.py"), kind, str(folder / "ckpt" / MODEL)]
    subprocess.run(words, check=True, timeout=60, capture_output=True)
    after = scan(str(folder / "ckpt"), settings)
    assert source(after) is Source.READ
    assert after.content not in {None, before.content}
    assert after.identity == before.identity


def test_o27_a_snapshot_that_was_linked_to_another_blob_is_read_again(
    case: Callable[[str], Path], settings: ScanSettings
) -> None:
    repo = case("O27") / "relink" / "hub" / "models--synth--tiny"
    before = scan(str(repo), settings)
    link = repo / "snapshots" / make_cases.COMMIT_A / MODEL
    other = next(path for path in (repo / "blobs").iterdir() if len(path.name) == 64 and path != link.resolve())
    link.unlink()
    link.symlink_to(other)
    after = scan(str(repo), settings)
    assert source(after) is Source.READ
    assert after.content not in {None, before.content}


@pytest.mark.parametrize("tick", [1, 2])
def test_o27_a_rewrite_within_one_tick_of_a_coarse_clock_is_read_again(
    tick: int, case: Callable[[str], Path], settings: ScanSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times in whole seconds, as GPFS (1 s) and FAT (2 s) keep them; the clock moves only while the scan waits."""
    clock = SetClock()
    clock.now += tick * 0.4
    of = validity.Stamp.of
    written = clock.time()

    def coarse(stat: os.stat_result) -> validity.Stamp:
        moment = int(written // tick * tick) * 10**9
        return of(stat)._replace(mtime_ns=moment, ctime_ns=moment)

    monkeypatch.setattr(validity.Stamp, "of", coarse)
    folder = case("O27") / "ckpt"
    before = scan(str(folder), settings, clock=clock)
    flip_bit(folder / MODEL, payload_offset(folder / MODEL))
    written = clock.time()
    after = scan(str(folder), settings, clock=clock)
    assert source(after) is Source.READ
    assert after.content not in {None, before.content}


DAMAGE = ["half", "empty", "garbage", "json-list", "future-version", "wrong-digests", "read-only", "dir-in-place"]


@pytest.mark.parametrize("kind", DAMAGE)
def test_o29_a_damaged_cache_never_changes_an_answer(
    kind: str, case: Callable[[str], Path], settings: ScanSettings
) -> None:
    folder = case("O29")
    plain = scan(str(folder / "ckpt"), ScanSettings(use_cache=False, threads=1))
    scan(str(folder / "ckpt"), settings)
    words = [sys.executable, str(folder / "damage_cache.py"), kind, str(settings.cache_dir)]
    subprocess.run(words, check=True, timeout=60, capture_output=True)
    after = scan(str(folder / "ckpt"), settings)
    for digest in ("content", "content_sha256", "identity"):
        assert getattr(after, digest) == getattr(plain, digest)
    assert {file.state for file in after.files} == {State.GOOD}
    assert len(after.warnings) <= 1


def test_o29_a_cache_that_may_not_be_written_is_one_warning_for_who_is_not_root(settings: ScanSettings) -> None:
    place = Path(tempfile.mkdtemp(prefix="ckpt-tui-cases-"))
    place.chmod(0o777)
    make_cases.CASES["O29"].fn(place, make_cases.CASES["O29"])
    cached = msgspec.structs.replace(settings, cache_dir=str(place / "cache"))

    def twice() -> bytes:
        scan(str(place / "ckpt"), cached)
        for path in (place / "cache").rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        (place / "cache").chmod(0o555)
        return msgspec.json.encode(scan(str(place / "ckpt"), msgspec.structs.replace(cached, rehash=True)))

    try:
        plain = scan(str(place / "ckpt"), ScanSettings(use_cache=False, threads=1))
        after = msgspec.json.decode(run_unprivileged(twice), type=ScanResult)
        assert (after.content, after.identity) == (plain.content, plain.identity)
        assert [warning for warning in after.warnings if "the digest cache is not written: EACCES" in warning]
        assert len(after.warnings) == 1
    finally:
        make_cases.restore_modes(place)
        shutil.rmtree(place)


_SCAN = """
import sys
from ckpt_tui.digest import scan, validity
from ckpt_tui.facts.settings import ScanSettings
print(scan(sys.argv[1], ScanSettings(cache_dir=sys.argv[2], threads=1)).content)
"""


def test_o29_eight_processes_with_one_empty_cache_say_the_same(
    case: Callable[[str], Path], settings: ScanSettings
) -> None:
    folder = str(case("O29") / "ckpt")
    words = [sys.executable, "-c", _SCAN, folder, str(settings.cache_dir)]
    scans = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = {one.communicate(timeout=120)[0].strip() for one in scans}
    assert [one.returncode for one in scans] == [0] * 8
    after = scan(folder, settings)
    assert said == {after.content}
    assert source(after) is Source.CACHE


@pytest.mark.parametrize(
    ("pair", "verdict", "words"),
    [
        (("x", "y"), Verdict.AGREE, []),
        (("x", "h"), Verdict.AGREE, []),
        (("x", "z"), Verdict.DIFFER, [make_cases.S2, "model.layers.1.w"]),
        (("x", "r"), Verdict.DIFFER, ["model-00001-of-00003.safetensors", "5 tensors equal"]),
        (("x", "k"), Verdict.DIFFER, ["config.json"]),
    ],
)
def test_o31_copies_agree_whatever_they_are_called_and_differ_where_they_do(
    pair: tuple[str, str], verdict: Verdict, words: list[str], case: Callable[[str], Path], settings: ScanSettings
) -> None:
    folder = case("O31")
    first, second = pair
    places = {"x": "x/tiny", "y": "y/renamed-copy", "z": "z/tiny", "h": "h/tiny", "r": "r/tiny", "k": "k/tiny"}
    found = compare(folder / places[first], folder / places[second], settings=settings)
    assert found.verdict is verdict
    text = agreement_text(found, found.created) + msgspec.json.encode(found.differences).decode()
    assert [word for word in words if word not in text] == []
    assert found.weights_equal is (second != "z")
    assert re.search(r"tensors? differ", text) is None or second == "z"
    if second == "z":
        assert [[one.name for one in difference.segments] for difference in found.differences] == [["model.layers.1.w"]]


@pytest.mark.parametrize("mode", ["grow", "rewrite", "replace", "shrink"])
def test_o34_a_file_that_changes_while_it_is_read_gives_no_digest_and_none_is_kept(
    mode: str, case: Callable[[str], Path], settings: ScanSettings
) -> None:
    folder = case("O34")
    before = scan(str(folder / "ckpt"), ScanSettings(use_cache=False, threads=1))
    words = [sys.executable, str(folder / "writer.py"), mode, str(folder / "ckpt" / MODEL), "1"]
    states = set()
    with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
        while writer.poll() is None:
            during = next(file for file in scan(str(folder / "ckpt"), settings).files if file.name == MODEL)
            states.add(during.state)
            assert (during.digest is None) == (during.state is State.CHANGED)
    assert State.CHANGED in states
    after = scan(str(folder / "ckpt"), settings)
    assert after.content == before.content
