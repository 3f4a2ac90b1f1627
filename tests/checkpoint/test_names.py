"""What files are by their names and by their first bytes."""

from __future__ import annotations

import gzip

import pytest

from ckpt_tui.checkpoint.names import Kind, gaps, kind_of, original_of
from ckpt_tui.checkpoint.sniff import pointer, sniff, sniff_text


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Kind.WEIGHTS, "model.safetensors model-00001-of-00002.safetensors MODEL.SafeTensors 1_Dense.safetensors"),
        (Kind.OPAQUE, "pytorch_model.bin llama.gguf consolidated.00.pth sd.ckpt __0_0.distcp model.pt"),
        (Kind.FOREIGN, "tf_model.h5 flax_model.msgpack model.onnx"),
        (Kind.INDEX, "model.safetensors.index.json model.fp16.safetensors.index.json pytorch_model.bin.index.json"),
        (
            Kind.SIDECAR,
            (
                "config.json generation_config.json tokenizer_config.json config_sentence_transformers.json "
                "preprocessor_config.json adapter_config.json model_index.json modules.json "
                "tokenizer.json tokenizer.model spiece.model vocab.json vocab.txt merges.txt special_tokens_map.json "
                "added_tokens.json tekken.json chat_template.jinja chat_template.json qwen.tiktoken"
            ),
        ),
        (
            Kind.LEFTOVER,
            (
                "training_args.bin optimizer.pt scheduler.pt rng_state_0.pth bf16_zero_pp_rank_0_optim_states.pt "
                "._model.safetensors model.safetensors.bak model.safetensors.part model.safetensors.aria2 "
                "pytorch_model.bin.tmp model.safetensors~ .model.safetensors.swp.safetensors"
            ),
        ),
        (Kind.OTHER, "README.md .gitattributes .DS_Store model.py data.json LICENSE"),
    ],
)
def test_a_name_says_what_a_file_is(kind: Kind, names: str) -> None:
    assert {name: kind_of(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


@pytest.mark.parametrize(
    ("names", "absent", "certain"),
    [
        (["m-00001-of-00003.bin"], ["m-00002-of-00003.bin", "m-00003-of-00003.bin"], True),
        (["m-00000-of-00002.bin"], ["m-00001-of-00002.bin"], True),
        (["m-1-of-2.gguf"], ["m-2-of-2.gguf"], True),
        (["out-00000.safetensors", "out-00002.safetensors"], ["out-00001.safetensors"], False),
        (["a-00001-of-00001.safetensors", "b-00001-of-00002.safetensors"], ["b-00002-of-00002.safetensors"], True),
    ],
)
def test_numbers_in_names_speak_of_siblings(names: list[str], absent: list[str], certain: bool) -> None:
    found = list(gaps(names))
    assert [gap.absent for gap in found] == [absent]
    assert [gap.certain for gap in found] == [certain]


@pytest.mark.parametrize(
    "names",
    [
        ["model.safetensors"],
        ["model-00001-of-00001.safetensors"],
        ["out-00003.safetensors", "out-00004.safetensors"],
        [],
    ],
)
def test_whole_sets_leave_no_gap(names: list[str]) -> None:
    assert list(gaps(names)) == []


@pytest.mark.parametrize(
    ("copy", "original"),
    [
        ("model (1).safetensors", "model.safetensors"),
        ("model(2).safetensors", "model.safetensors"),
        ("model - Copy.safetensors", "model.safetensors"),
        ("model - Copy (2).safetensors", "model.safetensors"),
        ("model copy.safetensors", "model.safetensors"),
        ("model.safetensors", None),
        ("(1).safetensors", None),
    ],
)
def test_copies_are_known_by_their_names(copy: str, original: str | None) -> None:
    assert original_of(copy) == original


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"PK\x03\x04rest", "zip"),
        (b"\x80\x02}q\x00.", "pickle"),
        (b"GGUF\x03\0\0\0", "GGUF"),
        (gzip.compress(b"x", mtime=0), "gzip"),
        (b"\n<!DOCTYPE html><html>", "HTML"),
        (b'<?xml version="1.0"?><Error>', "XML"),
        (b'{"error": "Repository not found"}', "JSON"),
        (b"\0" * 257 + b"ustar" + b"\0" * 100, "tar"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12\n", "git-lfs pointer"),
    ],
)
def test_first_bytes_say_what_was_named_weights(head: bytes, words: str) -> None:
    assert words in (sniff(head) or "")


@pytest.mark.parametrize(
    "head", [b"", b"\x40\0\0\0\0\0\0\0{}", b"{\0\0\0\0\0\0\0" + b"{" + b" " * 122, b"\x01\x02\x03"]
)
def test_what_could_be_weights_is_called_nothing_else(head: bytes) -> None:
    assert sniff(head) is None


def test_a_pickle_is_no_text_and_a_pointer_tells_what_it_stands_for() -> None:
    assert sniff_text(b"PK\x03\x04") is None
    found = pointer(b"version https://git-lfs.github.com/spec/v1\r\noid sha256:" + b"b" * 64 + b"\r\nsize 1234\r\n")
    assert found is not None
    assert "1,234 bytes" in found.words
    assert "git lfs pull" in found.words
