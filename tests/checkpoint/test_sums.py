"""Checksum files as people and tools write them, and as nobody should."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckpt_tui.checkpoint.names import inside
from ckpt_tui.checkpoint.sums import Sum, parse_sums

A, B = "a" * 64, "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"{A}  model.safetensors", b"model.safetensors"),
        (f"{A} *model.safetensors", b"model.safetensors"),
        (f"{A} model.safetensors", b"model.safetensors"),
        (f"{A.upper()}  ./unet//a b.safetensors\r", b"unet/a b.safetensors"),
        (f"  {A}   leading space", b" leading space"),
        (f"\\{A}  line\\nbreak\\\\", b"line\nbreak\\"),
        (f"SHA256 (model.safetensors) = {A}", b"model.safetensors"),
        (f"SHA256(a (1).bin)= {A}", b"a (1).bin"),
        (f"SHA2-256 (x) = {A}", b"x"),
        (f"\\SHA256 (line\\nbreak) = {A}", b"line\nbreak"),
    ],
)
def test_every_known_form_of_a_line_is_read(line: str, name: bytes) -> None:
    found = parse_sums(f"# a comment\n\n{line}\n".encode())
    assert found.sums == [Sum(name, A)] or found.sums == [Sum(name, A.lower())]
    assert (found.broken, found.outside, found.other) == (0, 0, 0)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("hello", "broken"),
        (f"{A[:-1]}g  x", "broken"),
        (f"{A}  ", "broken"),
        (f"\\{A}  bad\\escape", "broken"),
        (f"{A}  {'x' * 20_000}", "broken"),
        (f"{A}  ../x", "outside"),
        (f"{A}  /etc/passwd", "outside"),
        (f"{A}  a/../../x", "outside"),
        (f"{A}  nul\0", "outside"),
        ("d41d8cd98f00b204e9800998ecf8427e  x", "other"),
        ("MD5 (x) = d41d8cd98f00b204e9800998ecf8427e", "other"),
        (f"{A}{A}  x", "other"),
        (f"BLAKE2b (x) = {A}{A}", "other"),
    ],
)
def test_what_cannot_be_used_is_counted_and_the_rest_is_kept(line: str, field: str) -> None:
    found = parse_sums(f"{B}  good\n{line}\n".encode())
    assert found.sums == [Sum(b"good", B)]
    assert {name: getattr(found, name) for name in ("broken", "outside", "other")} == {
        "broken": 0,
        "outside": 0,
        "other": 0,
        field: 1,
    }
    assert found.first_broken == (2 if field == "broken" else 0)


def test_a_file_of_another_kind_is_given_up() -> None:
    found = parse_sums(b"x\n" * 1_000_000 + f"{A}  x\n".encode())
    assert (found.sums, found.broken, found.given_up) == ([], 10_000, True)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse_sums(f"\ufeff{A}  x\n".encode()).sums == [Sum(b"x", A)]


def test_a_digest_alone_is_of_the_file_that_the_name_is_of() -> None:
    assert parse_sums(f"{A}\n".encode(), b"x.bin").sums == [Sum(b"x.bin", A)]
    assert parse_sums(f"{A}\n".encode()).broken == 1


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_can_hurt_the_parser_nor_lead_out_of_the_folder(raw: bytes) -> None:
    for one in parse_sums(raw).sums:
        assert inside(one.name) == one.name
        assert not one.name.startswith(b"/")
        assert b".." not in one.name.split(b"/")


NAMES = st.binary(min_size=1, max_size=30).filter(lambda raw: b"\0" not in raw and inside(raw) == raw)


@settings(deadline=None)
@given(
    st.dictionaries(NAMES, st.binary(min_size=32, max_size=32), max_size=5), st.sampled_from(["gnu", "binary", "tag"])
)
def test_what_is_written_as_gnu_writes_it_is_read_back(files: dict[bytes, bytes], form: str) -> None:
    raw = b""
    for name, digest in files.items():
        safe = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
        raw += b"\\" if safe != name else b""
        if form == "tag":
            raw += b"SHA256 (%s) = %s\n" % (safe, digest.hex().encode())
        else:
            raw += b"%s %s%s\n" % (digest.hex().encode(), b"*" if form == "binary" else b" ", safe)
    found = parse_sums(raw)
    assert found.sums == [Sum(name, digest.hex()) for name, digest in files.items()]
    assert (found.broken, found.outside, found.other) == (0, 0, 0)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
@pytest.mark.parametrize("options", [(), ("--binary",), ("--tag",)])
def test_sha256sum_itself_is_understood(options: tuple[str, ...], tmp_path: Path) -> None:
    names = ["plain", "with space", "line\nbreak", "back\\slash", "é", "-- dash", "(1)"]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    done = subprocess.run(
        ["sha256sum", *options, "--", *names], cwd=tmp_path, capture_output=True, timeout=60, check=True
    )
    assert parse_sums(done.stdout).sums == [
        Sum(name.encode(), hashlib.sha256(name.encode()).hexdigest()) for name in names
    ]
