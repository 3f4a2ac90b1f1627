"""What is remembered of an index and its headers spares parsing them, and hides nothing that parsing would find."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ckpt_tui.checkpoint import inspect, plan
from ckpt_tui.checkpoint.outline import key_of
from ckpt_tui.digest import Scanner
from ckpt_tui.facts.files import State
from ckpt_tui.facts.scan import ScanResult
from tests.digest.conftest import named
from tests.support.checkpoints import safetensors_bytes, tensor, write_checkpoint

Scan = Callable[..., ScanResult]
SHARD = "model-00001-of-00002.safetensors"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is parsed while the test runs: `index` and `header`, once for each."""
    seen: list[str] = []
    for module, name, word in ((inspect, "parse_header", "header"), (plan, "parse_index", "index")):
        function = getattr(module, name)

        def noted(raw: bytes, *, function: Callable[[bytes], object] = function, word: str = word) -> object:
            seen.append(word)
            return function(raw)

        monkeypatch.setattr(module, name, noted)
    return seen


def said(result: ScanResult) -> object:
    """What a scan found: all but when, how fast and from where."""
    files = [msgspec.structs.replace(file, source=None, miss_reason=None, hashed_at=None) for file in result.files]
    return result.identity, result.content, result.logical_content, result.findings, files


def outline(cache: Path) -> Path:
    return next(cache.rglob("*.outline"))


def edit(path: Path, old: bytes, new: bytes) -> None:
    raw = path.read_bytes()
    assert len(old) == len(new)
    assert old in raw
    path.write_bytes(raw.replace(old, new, 1))


def test_a_second_scan_parses_neither_the_index_nor_the_headers(folder: Path, scanned: Scan, parsed: list[str]) -> None:
    first = scanned(folder)
    assert parsed == ["index", "header", "header"]
    parsed.clear()
    second = scanned(folder)
    assert parsed == []
    assert said(second) == said(first)
    assert second.totals.bytes_read == 0


def test_tables_are_parsed_when_somebody_looks_at_them(
    folder: Path, scanner: Callable[..., Scanner], parsed: list[str]
) -> None:
    first = scanner(folder)
    first.run()
    second = scanner(folder)
    second.run()
    parsed.clear()
    assert second.segments(SHARD) == first.segments(SHARD)
    assert [file.header and [*file.header.tensors] for file in second.survey().checkpoint.weights] == [
        file.header and [*file.header.tensors] for file in first.survey().checkpoint.weights
    ]


@pytest.mark.parametrize("at", ["header", "index"])
def test_a_tensor_that_the_index_does_not_list_any_more_is_found(at: str, folder: Path, scanned: Scan) -> None:
    assert scanned(folder).findings == ()
    place = folder / (SHARD if at == "header" else "model.safetensors.index.json")
    edit(place, b"model.layers.1", b"model.layerz.1")
    for _ in range(2):
        found = scanned(folder)
        assert {finding.code for finding in found.findings} == {"missing-tensor", "unlisted-tensor"}


def test_a_tensor_that_comes_to_lie_in_two_shards_is_found(tmp_path: Path, scanned: Scan) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    shards = {"a.safetensors": ("x", "y"), "b.safetensors": ("z",)}
    for name, held in shards.items():
        (folder / name).write_bytes(safetensors_bytes({one: tensor(one) for one in held}))
    weight_map = {one: name for name, held in shards.items() for one in held}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert scanned(folder).findings == ()
    (folder / "b.safetensors").write_bytes(safetensors_bytes({one: tensor(one) for one in ("x", "z")}))
    again = scanned(folder)
    assert {file.state for file in again.files if file.name in shards} == {State.AMBIGUOUS}
    assert "ambiguous" in {finding.code for finding in again.findings}


def test_a_file_that_was_cut_since_is_truncated_and_its_first_tensor_is_named(folder: Path, scanned: Scan) -> None:
    scanned(folder)
    path = folder / SHARD
    path.write_bytes(path.read_bytes()[:-4])
    assert named(scanned(folder), SHARD).state is State.TRUNCATED
    assert "the first tensor that is cut is model.layers" in (named(scanned(folder), SHARD).error or "")


def test_zeros_are_told_by_the_remembered_lengths(tmp_path: Path, scanned: Scan, parsed: list[str]) -> None:
    folder = write_checkpoint(tmp_path / "model", tensors=4, shape=(128, 128))
    path = folder / SHARD
    raw = path.read_bytes()
    path.write_bytes(raw[: -2 * 65536] + bytes(2 * 65536))
    first = scanned(folder)
    assert named(first, SHARD).state is State.SUSPECT
    parsed.clear()
    assert said(scanned(folder)) == said(first)
    assert parsed == []


def test_whatever_becomes_of_the_outline_the_answer_is_the_same(folder: Path, cache: Path, scanned: Scan) -> None:
    first = scanned(folder)
    place = outline(cache)
    raw = place.read_bytes()
    for at in range(0, len(raw), 7):
        for broken in (raw[:at], raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]):
            place.write_bytes(broken)
            assert said(scanned(folder)) == said(first)
    assert outline(cache).read_bytes() == raw, "written anew"


def test_what_something_is_wrong_with_is_not_remembered(folder: Path, cache: Path, scanned: Scan) -> None:
    edit(folder / SHARD, b"model.layers.1", b"model.layerz.1")
    first = scanned(folder)
    assert first.findings
    assert [*cache.rglob("*.outline")] == []
    assert said(scanned(folder)) == said(first)


def test_a_header_that_gives_a_warning_gives_it_again(tmp_path: Path, scanned: Scan) -> None:
    folder = write_checkpoint(tmp_path / "model")
    edit(folder / SHARD, b'"F32"', b'"Z32"')
    first = scanned(folder)
    assert "header" in {finding.code for finding in first.findings}
    assert said(scanned(folder)) == said(first)


@pytest.mark.parametrize("setting", ["use_cache", "rehash", "identity_only"])
def test_a_scan_that_is_to_look_anew_parses(setting: str, folder: Path, scanned: Scan, parsed: list[str]) -> None:
    scanned(folder)
    parsed.clear()
    scanned(folder, **{setting: setting != "use_cache"})
    assert parsed == ["index", "header", "header"]


def test_an_index_counts_in_its_own_folder_alone() -> None:
    assert len({key_of(b"{}", folder) for folder in ("", "unet", "a\udcff")} | {key_of(b"b{}", "unet"[:-1])}) == 4


def test_shards_that_were_left_out_are_not_forgotten(folder: Path, scanned: Scan) -> None:
    whole = scanned(folder, use_cache=False)
    for _ in range(2):
        assert len(scanned(folder, rank_local=(SHARD,)).not_compared) == 1
        assert said(scanned(folder)) == said(whole)


def test_a_survey_alone_writes_nothing(folder: Path, cache: Path, scanner: Callable[..., Scanner]) -> None:
    scanner(folder).survey()
    assert not cache.exists()


def test_of_the_headers_only_the_one_that_changed_is_parsed_and_held_against_the_index(
    folder: Path, scanned: Scan, parsed: list[str]
) -> None:
    scanned(folder)
    edit(folder / SHARD, b'"format":"pt"', b'"format":"tf"')
    for expected in (["header", "index"], []):
        parsed.clear()
        assert scanned(folder).findings == ()
        assert parsed == expected
