"""Files held against each other and against what names them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ckpt_tui.checkpoint import locate
from ckpt_tui.facts.files import Severity, State
from tests.support.checkpoints import safetensors_bytes, tensor, write_checkpoint
from tests.support.unprivileged import run_unprivileged

if TYPE_CHECKING:
    from ckpt_tui.checkpoint import Checkpoint

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def states(found: Checkpoint) -> dict[str, State]:
    return {file.name: file.state for file in found.files}


def severities(found: Checkpoint) -> dict[str, Severity]:
    return {one.code: one.severity for one in found.findings}


def put(folder: Path, name: str, *names: str) -> None:
    """A safetensors file with these tensors."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(safetensors_bytes({one: tensor(one) for one in names}))


def index(folder: Path, shards: dict[str, str], name: str = INDEX, **metadata: Any) -> None:
    (folder / name).write_text(json.dumps({"metadata": metadata, "weight_map": shards}))


def test_a_tensor_in_two_mapped_shards_makes_both_ambiguous(tmp_path: Path) -> None:
    put(tmp_path, "a.safetensors", "one", "both")
    put(tmp_path, "b.safetensors", "two", "both")
    index(tmp_path, {"one": "a.safetensors", "both": "a.safetensors", "two": "b.safetensors"})
    found = locate(str(tmp_path))
    assert states(found)["a.safetensors"] is State.AMBIGUOUS
    assert states(found)["b.safetensors"] is State.AMBIGUOUS
    assert severities(found)["ambiguous"] is Severity.ERROR


def test_tensors_in_two_shards_are_named_in_the_same_order_by_every_process(tmp_path: Path) -> None:
    names = [f"layer.{number}" for number in range(8)]
    for file in ("a.safetensors", "b.safetensors"):
        put(tmp_path, file, *reversed(names), file)
    index(tmp_path, {**dict.fromkeys([*names, "a.safetensors"], "a.safetensors"), "b.safetensors": "b.safetensors"})
    found = next(one for one in locate(str(tmp_path)).findings if one.code == "ambiguous")
    assert ", ".join(names) in found.message
    assert found.tensor == names[0]


def test_two_indexes_side_by_side_are_two_maps(tmp_path: Path) -> None:
    for kind in ("", ".fp16"):
        put(tmp_path, f"a{kind}.safetensors", "one", "two")
        file = f"a{kind}.safetensors"
        index(tmp_path, {"one": file, "two": file}, f"model{kind}.safetensors.index.json")
    found = locate(str(tmp_path))
    assert set(states(found).values()) == {State.GOOD}
    assert found.findings == ()


def test_many_disagreements_are_one_finding_with_a_count(tmp_path: Path) -> None:
    put(tmp_path, "a.safetensors", "there")
    index(tmp_path, {f"gone.{number:02}": "a.safetensors" for number in range(20)} | {"there": "a.safetensors"})
    found = locate(str(tmp_path))
    assert [one.code for one in found.findings] == ["missing-tensor"]
    assert found.findings[0].tensor == "gone.00"
    assert "and 12 more" in found.findings[0].message


def test_a_shard_that_cannot_be_read_settles_nothing_about_its_tensors(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / FIRST).write_bytes(b"")
    assert [one.code for one in locate(str(folder)).findings] == ["bad-header"]


def test_files_of_a_listing_that_share_a_tensor_are_a_warning(tmp_path: Path) -> None:
    put(tmp_path, "model.safetensors", "one", "two")
    put(tmp_path, "model.fp16.safetensors", "one", "two")
    found = locate(str(tmp_path))
    assert set(states(found).values()) == {State.GOOD}
    assert severities(found)["ambiguous"] is Severity.WARNING


def test_a_copy_by_name_with_another_header_is_no_copy(tmp_path: Path) -> None:
    put(tmp_path, "model.safetensors", "one", "two")
    put(tmp_path, "model (1).safetensors", "one")
    found = locate(str(tmp_path))
    assert len(found.weights) == 2
    assert found.not_compared == ()


def test_a_pipeline_is_its_parts_and_its_loose_weights_are_extra(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text(
        json.dumps({"_class_name": "P", "unet": ["diffusers", "U"], "vae": ["diffusers", "V"], "safety": [None, None]})
    )
    put(tmp_path, "unet/a.safetensors", "one")
    put(tmp_path, "all-in-one.safetensors", "one")
    found = locate(str(tmp_path))
    assert [file.name for file in found.weights] == ["unet/a.safetensors"]
    assert [row.name for row in found.not_compared] == ["all-in-one.safetensors"]
    assert severities(found)["component-missing"] is Severity.ERROR
    assert "vae" in next(one.message for one in found.findings if one.code == "component-missing")


def test_the_modules_of_a_sentence_transformer_count(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, index=False, shards=1)
    put(tmp_path, "2_Dense/model.safetensors", "linear.weight")
    (tmp_path / "modules.json").write_text(json.dumps([{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}]))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text("{}")
    names = [file.name for file in locate(str(tmp_path)).files]
    assert "2_Dense/model.safetensors" in names
    assert "1_Pooling/config.json" in names


def test_a_module_that_saves_nothing_needs_no_folder(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, index=False, shards=1)
    module = {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
    (tmp_path / "modules.json").write_text(json.dumps([{"path": ""}, module]))
    assert "component-missing" not in severities(locate(str(tmp_path)))


def test_parts_without_a_list_of_parts_are_found_one_level_down(tmp_path: Path) -> None:
    put(tmp_path, "unet/a.safetensors", "one")
    put(tmp_path, "deep/er/b.safetensors", "two")
    found = locate(str(tmp_path))
    assert [file.name for file in found.weights] == ["unet/a.safetensors"]
    assert [row.name for row in found.not_compared] == ["deep/er/b.safetensors"]


@pytest.mark.parametrize("path", ["../secret", "/etc", "1_Pooling/../../secret"])
def test_parts_that_lead_out_of_the_folder_are_not_entered(tmp_path: Path, path: str) -> None:
    folder = write_checkpoint(tmp_path / "m", index=False)
    put(tmp_path, "secret/model.safetensors", "one")
    (folder / "modules.json").write_text(json.dumps([{"path": path}]))
    found = locate(str(folder))
    assert len(found.weights) == 2
    assert severities(found)["component-missing"] is Severity.ERROR


def test_a_part_that_may_not_be_listed_is_unreadable_and_not_left_out() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        put(root, "unet/a.safetensors", "one")
        put(root, "vae/b.safetensors", "two")
        (root / "vae").chmod(0)
        found = json.loads(run_unprivileged(lambda: json.dumps(states(locate(name))).encode()))
        (root / "vae").chmod(0o755)
    assert found == {"unet/a.safetensors": "good", "vae": "unreadable"}


@pytest.mark.parametrize("body", [b"{", b"[[[[", b"\xff", b'{"unet": ["diffusers", "U"]'])
def test_a_broken_list_of_parts_is_damage_and_stops_nothing(tmp_path: Path, body: bytes) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "model_index.json").write_bytes(body)
    found = locate(str(folder))
    assert len(found.weights) == 2
    assert states(found)["model_index.json"] is State.BAD_HEADER


def test_an_index_of_another_format_serves_where_there_are_no_safetensors(tmp_path: Path) -> None:
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 weights")
    index(tmp_path, {"one": "a.bin", "two": "b.bin", "three": "c.bin"}, "pytorch_model.bin.index.json")
    found = locate(str(tmp_path))
    assert states(found)["a.bin"] is State.GOOD
    assert states(found)["c.bin"] is State.MISSING


def test_an_empty_or_textual_file_is_no_weights_in_any_format(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"")
    (tmp_path / "b.bin").write_bytes(b"<html>please log in</html>")
    found = states(locate(str(tmp_path)))
    assert found == {"a.bin": State.BAD_HEADER, "b.bin": State.NOT_WEIGHTS}


def test_a_hostile_header_is_not_told_in_a_million_findings(tmp_path: Path) -> None:
    entries = {f"t{number}": {"dtype": "U8", "shape": [2], "data_offsets": [0, 1]} for number in range(5_000)}
    header = json.dumps(entries).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    found = locate(str(tmp_path))
    assert states(found) == {"model.safetensors": State.BAD_LAYOUT}
    assert len(found.findings) < 110
    assert "4,900 more problems" in found.findings[-1].message


def test_holes_make_a_file_suspect_only_where_whole_tensors_are_missing(tmp_path: Path) -> None:
    blob = safetensors_bytes({name: tensor(name, (64, 64)) for name in ("a", "b", "c")})
    path = tmp_path / "model.safetensors"
    path.write_bytes(blob[: len(blob) - 2 * 16384])
    with path.open("r+b") as file:
        file.truncate(len(blob))
    if path.stat().st_blocks * 512 >= len(blob):
        pytest.skip("this file system makes no holes")
    found = locate(str(tmp_path))
    assert states(found)["model.safetensors"] is State.SUSPECT
    assert "2 of 3 tensors are entirely zero" in found.findings[-1].message
    path.write_bytes(blob[: len(blob) - 8192])
    with path.open("r+b") as file:
        file.truncate(len(blob))
    assert states(locate(str(tmp_path)))["model.safetensors"] is State.GOOD
