"""The tests' own checkpoint writer, held against `safetensors` itself."""

from __future__ import annotations

from pathlib import Path

from safetensors import deserialize

from ckpt_tui.demo import model
from tests.support.checkpoints import safetensors_bytes, tensor, write_checkpoint


def test_the_writer_writes_what_safetensors_reads() -> None:
    tensors = {"a": tensor("a", (2, 3)), "b": tensor("b", (5,), "BF16"), "scalar": tensor("scalar", (), "I64")}
    read = dict(deserialize(safetensors_bytes(tensors, {"format": "pt"})))
    assert {name: (t["dtype"], tuple(t["shape"]), bytes(t["data"])) for name, t in read.items()} == tensors


def test_a_written_checkpoint_is_loadable(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny", shards=3)
    shards = sorted(folder.glob("*.safetensors"))
    assert len(shards) == 3
    for shard in shards:
        assert len(deserialize(shard.read_bytes())) == 3


def test_the_demo_writes_a_loadable_checkpoint_of_about_the_size_asked_for(tmp_path: Path) -> None:
    model.write(tmp_path, 16 << 20)
    shards = sorted(tmp_path.glob("*.safetensors"))
    assert len(shards) == model.SHARDS
    assert 12 << 20 < sum(shard.stat().st_size for shard in shards) < 20 << 20
    for shard in shards:
        assert deserialize(shard.read_bytes())
