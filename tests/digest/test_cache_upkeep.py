"""What lies in the cache folder, what of it may go, and how often it was of use."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ckpt_tui.digest import ledger
from ckpt_tui.digest.cache import encode, parse
from ckpt_tui.digest.filesystem import FileSystem, FileSystems
from ckpt_tui.digest.ledger import Use
from ckpt_tui.digest.upkeep import Upkeep
from ckpt_tui.facts.cached import Standing
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.facts.settings import ScanSettings
from tests.support.checkpoints import flip_bit, noise, payload_offset, write_checkpoint

Scan = Callable[..., ScanResult]
SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def upkeep(cache: Path) -> Callable[..., Upkeep]:
    """The cache as its owner sees it now."""

    def make(*, all_hosts: bool = False, **settings: object) -> Upkeep:
        return Upkeep(ScanSettings(cache_dir=str(cache), **settings), SystemClock(), all_hosts=all_hosts)  # type: ignore[arg-type]

    return make


Make = Callable[..., Upkeep]


def host_folder(cache: Path) -> Path:
    return next(cache.iterdir())


def test_hits_and_misses_are_counted_by_folder(folder: Path, tmp_path: Path, scanned: Scan, upkeep: Make) -> None:
    total = scanned(folder).totals.bytes
    for _ in range(3):
        scanned(folder)
    other = write_checkpoint(tmp_path / "other", shards=1)
    scanned(other)
    totals = upkeep().stats().totals
    assert (totals.hits, totals.bytes_saved) == (15, 3 * total)
    assert totals.misses == totals.records == 9
    assert totals.bytes_read == totals.bytes
    folders = {Path(one.path).name: one for one in upkeep().records([], each=False).folders}
    assert (folders["model"].hits, folders["other"].hits) == (15, 0)
    assert folders["model"].files == 5


def test_a_folder_of_one_file_is_counted_as_well(tmp_path: Path, scanned: Scan, upkeep: Make) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "model.gguf").write_bytes(b"GGUF" + noise("alone", 5000))
    for _ in range(2):
        scanned(tmp_path / "alone")
    totals = upkeep().stats().totals
    assert (totals.misses, totals.bytes_read, totals.hits, totals.bytes_saved) == (1, 5004, 1, 5004)


def test_the_ledger_is_summed_up_when_it_grows_and_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    for number in range(3000):
        ledger.append(
            place, [Use(float(number), "/models/" + "x" * 60, 1, 10, 2, 20), Use(float(number), "/b", 0, 0, 1, 5)]
        )
    assert place.stat().st_size < 300 << 10
    sums = ledger.by_folder(ledger.read(place))
    assert sums["/models/" + "x" * 60] == Use(2999.0, "/models/" + "x" * 60, 3000, 30000, 6000, 60000)
    assert sums["/b"] == Use(2999.0, "/b", 0, 0, 3000, 15000)


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"[]", b'["ckpttuil",1,2', b'["ckpttuil",1,"a","b",1,1,1,1]'])
def test_lines_of_the_ledger_that_cannot_be_read_are_left_out(damage: bytes, tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    ledger.append(place, [Use(1.0, "/a", 1, 1, 1, 1)])
    with place.open("ab") as file:
        file.write(b"\n" + damage)
    ledger.append(place, [Use(2.0, "/a", 1, 1, 1, 1)])
    assert ledger.by_folder(ledger.read(place)) == {"/a": Use(2.0, "/a", 2, 2, 2, 2)}


def test_a_ledger_that_cannot_be_written_costs_nothing(
    tmp_path: Path, folder: Path, cache: Path, scanned: Scan
) -> None:
    scanned(folder)
    place = host_folder(cache) / "ledger"
    place.unlink()
    place.mkdir()
    assert scanned(folder).warnings == ()
    ledger.append(tmp_path / "nowhere" / "ledger", [Use(1.0, "/a", 1, 1, 1, 1)])
    assert list(ledger.read(tmp_path / "nowhere" / "ledger")) == []


def standings(found: Upkeep) -> dict[str, Standing]:
    return {Path(file.path).name: file.standing for file in found.records([], each=True).files}


def test_records_say_what_they_are_worth_now(folder: Path, scanned: Scan, upkeep: Make) -> None:
    scanned(folder)
    flip_bit(folder / SHARD, payload_offset(folder / SHARD))
    (folder / "config.json").unlink()
    found = standings(upkeep())
    assert found[SHARD] is Standing.CHANGED
    assert found["config.json"] is Standing.GONE
    assert found["tokenizer.json"] is Standing.CURRENT


def test_a_disk_that_is_not_mounted_takes_no_record_with_it(
    folder: Path, scanned: Scan, upkeep: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FileSystems.of
    disk = FileSystem("ext4", "/dev/sdz", "ext4:another")
    monkeypatch.setattr(FileSystems, "of", lambda *_: disk)
    scanned(folder)
    monkeypatch.setattr(FileSystems, "of", real)
    assert set(standings(upkeep()).values()) == {Standing.NOT_MOUNTED}
    shutil.rmtree(folder)
    assert set(standings(upkeep()).values()) == {Standing.NOT_MOUNTED}
    assert upkeep().prune(older_than=None, dry_run=False).removed == ()


def test_prune_takes_what_is_gone_or_unusable_and_says_so_first(
    folder: Path, cache: Path, scanned: Scan, upkeep: Make
) -> None:
    scanned(folder)
    (folder / "config.json").unlink()
    place = host_folder(cache)
    damaged = next(one for one in place.glob("*.digest") if b"tokenizer.json" in one.read_bytes())
    damaged.write_bytes(damaged.read_bytes()[:-3])
    old = place / f".{'a' * 32}.digest.123.{'b' * 12}"
    young = place / f".{'c' * 32}.digest.123.{'d' * 12}"
    for part in (old, young):
        part.write_bytes(b"")
    os.utime(old, (time.time() - 9999, time.time() - 9999))
    moved = place / f"{'e' * 32}.digest"
    shutil.copy(next(one for one in place.glob("*.digest") if SHARD.encode() in one.read_bytes()), moved)
    plan = upkeep().prune(older_than=None, dry_run=True)
    assert sorted(one.why for one in plan.removed) == [
        "damaged", "its file is gone", "never finished", "written for another file",
    ]  # fmt: skip
    assert all(one.exists() for one in (damaged, old, moved)), "so far only said"
    assert upkeep().prune(older_than=None, dry_run=False).removed == plan.removed
    assert not any(one.exists() for one in (damaged, old, moved))
    assert young.exists(), "it may be being written"
    assert scanned(folder).totals.files_cached == 3


def test_prune_older_than_spares_what_was_used_since(
    folder: Path, tmp_path: Path, cache: Path, scanned: Scan, upkeep: Make
) -> None:
    unused = write_checkpoint(tmp_path / "unused")
    scanned(folder)
    scanned(unused)
    (host_folder(cache) / "ledger").unlink()
    for place in cache.rglob("*.digest"):
        found = parse(place.read_bytes())
        assert isinstance(found, tuple)
        place.write_bytes(encode(found[0], found[1]._replace(hashed_at=time.time() - 3600)))
    scanned(folder)
    removed = upkeep().prune(older_than=1800.0, dry_run=False).removed
    assert {Path(one.path or "").parent.name for one in removed} == {"unused"}
    assert {one.why for one in removed} == {"unused"}
    assert upkeep().prune(older_than=7200.0, dry_run=False).removed == ()


def test_clear_takes_all_that_is_ours_and_nothing_else(folder: Path, cache: Path, scanned: Scan, upkeep: Make) -> None:
    scanned(folder)
    place = host_folder(cache)
    foreign = {
        "notes.txt": b"mine",
        f"{'0' * 32}.digest": b"no record",
        f"{'0' * 64}.logical": b"no digest",
        f"{'0' * 64}.outline": b"no outline",
        "x.digest": b"",
    }
    for name, raw in foreign.items():
        (place / name).write_bytes(raw)
    (place / f"{'2' * 32}.digest").symlink_to(folder / "config.json")
    assert upkeep().stats().totals.foreign == 6
    report = upkeep().clear([], dry_run=False)
    assert len(report.removed) == 8, "five records, a logical content, an outline, the ledger"
    assert {one.name for one in place.iterdir()} == {*foreign, f"{'2' * 32}.digest"}
    assert (folder / "config.json").exists()
    assert scanned(folder).totals.files_cached == 0


def test_an_empty_folder_goes_with_the_last_record(folder: Path, cache: Path, scanned: Scan, upkeep: Make) -> None:
    scanned(folder)
    upkeep().clear([], dry_run=False)
    assert list(cache.iterdir()) == []
    assert upkeep().stats().totals.records == 0


def test_clear_below_a_path_follows_its_links(folder: Path, tmp_path: Path, scanned: Scan, upkeep: Make) -> None:
    scanned(folder)
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    (snapshot / "model.safetensors").symlink_to(folder / SHARD)
    assert [Path(one.path or "").name for one in upkeep().clear([str(snapshot)], dry_run=False).removed] == [SHARD]
    assert len(upkeep().clear([str(folder / "config.json")], dry_run=False).removed) == 1
    assert upkeep().clear([str(tmp_path / "mod")], dry_run=False).removed == (), "a beginning of a name is no folder"
    assert len(upkeep().clear([str(folder)], dry_run=False).removed) == 3


def test_records_of_other_hosts_are_left_alone_unless_asked_for(
    folder: Path, cache: Path, scanned: Scan, upkeep: Make
) -> None:
    scanned(folder, host_id="theirs")
    scanned(folder, host_id="ours")
    ours = upkeep(host_id="ours")
    assert ours.stats().totals.records == 5
    both = upkeep(host_id="ours", all_hosts=True)
    assert both.stats().totals.records == 10
    theirs = [file for file in both.records([], each=True).files if file.host]
    assert {(file.standing, file.detail) for file in theirs} == {(Standing.UNKNOWN, "of another host")}
    shutil.rmtree(folder)
    assert len(upkeep(host_id="ours", all_hosts=True).prune(older_than=None, dry_run=False).removed) == 5
    assert len(upkeep(host_id="theirs").prune(older_than=None, dry_run=False).removed) == 5
