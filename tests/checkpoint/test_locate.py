"""Which files make a checkpoint, and the state in which each is found."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from ckpt_tui.checkpoint import locate
from ckpt_tui.facts.files import State
from ckpt_tui.facts.outcome import UsageError
from tests.support.checkpoints import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from ckpt_tui.checkpoint import Checkpoint


def states(checkpoint: Checkpoint) -> dict[str, State]:
    return {file.name: file.state for file in checkpoint.files}


def codes(checkpoint: Checkpoint) -> set[str]:
    return {finding.code for finding in checkpoint.findings}


def test_a_sharded_folder_is_its_shards_and_sidecars_in_name_order(tmp_path: Path) -> None:
    found = locate(str(write_checkpoint(tmp_path / "m")))
    assert [file.name for file in found.weights] == [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    assert [file.name for file in found.sidecars] == ["config.json", "model.safetensors.index.json", "tokenizer.json"]
    assert set(states(found).values()) == {State.GOOD}
    assert found.findings == ()
    header = found.weights[0].header
    assert header is not None
    assert header.needed == found.weights[0].size
    assert [tensor.length for tensor in header.tensors] == [1024] * 3


def test_shards_in_subfolders_count_and_stale_ones_do_not(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, names={1: "layers/a.safetensors"})
    (folder / "stale.safetensors").write_bytes((folder / "layers/a.safetensors").read_bytes())
    found = locate(str(folder))
    assert [file.name for file in found.weights] == ["layers/a.safetensors", "model-00002-of-00002.safetensors"]
    assert [row.name for row in found.not_compared] == ["stale.safetensors"]


def test_include_takes_in_what_the_index_does_not_name(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "mtp.safetensors").write_bytes((folder / "model-00001-of-00002.safetensors").read_bytes())
    found = locate(str(folder), include=("mtp*",))
    assert "mtp.safetensors" in states(found)
    assert found.not_compared == ()
    assert "include-nothing" in codes(locate(str(folder), include=("nothing*",)))


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/../../x.safetensors"])
def test_names_that_lead_out_of_the_folder_are_never_opened(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path / "m", names={1: "a.safetensors"})
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace("a.safetensors", name))
    found = locate(str(folder))
    assert states(found)[name] is State.OUTSIDE


@pytest.mark.parametrize("name", ["", ".", "dir/", "nul\0.safetensors"])
def test_an_index_whose_values_name_no_file_is_unusable(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path / "m")
    index = folder / "model.safetensors.index.json"
    body = json.loads(index.read_text())
    body["weight_map"]["extra"] = name
    index.write_text(json.dumps(body))
    found = locate(str(folder))
    assert states(found)["model.safetensors.index.json"] is State.BAD_HEADER
    assert not found.weights
    assert len(found.not_compared) == 2


def test_a_single_file_is_a_checkpoint(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    found = locate(str(folder / "model-00001-of-00002.safetensors"))
    assert found.ref.kind == "file"
    assert [file.name for file in found.files] == ["model-00001-of-00002.safetensors"]


def test_a_folder_without_an_index_is_listed_and_says_so(tmp_path: Path) -> None:
    found = locate(str(write_checkpoint(tmp_path, index=False)))
    assert len(found.weights) == 2
    assert "no-index" in codes(found)


@pytest.mark.parametrize("target", ["", "./nowhere", "/nowhere/at/all", "no/such-repo", "x" * 5000, "a\0b"])
def test_what_names_nothing_is_wrong_usage(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError):
        locate(target, hub_cache=str(tmp_path))


def test_an_empty_folder_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no weights"):
        locate(str(tmp_path))


def test_special_files_are_wrong_usage_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.safetensors")
    with pytest.raises(UsageError, match="regular file"):
        locate(str(tmp_path / "x.safetensors"))
