"""Compiled code against the same in Python, against `hashlib` and `xxhash`, and against what nobody should hand it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from array import array
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckpt_tui.native import header_columns, plain
from ckpt_tui.native import names as names_module
from tests.support.checkpoints import write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from ckpt_tui.native import _compiled
except ImportError:  # a machine without a compiler
    _compiled = None  # type: ignore[assignment]

MADE = [plain, _compiled] if _compiled else [plain]
compiled = pytest.mark.skipif(_compiled is None, reason="the compiled code was not built here")
KERNELS: tuple[str, ...] = getattr(_compiled, "SHA256_KERNELS", ())
paired = pytest.mark.skipif(not KERNELS, reason="not built, or this processor has no instructions for SHA-256")

#: Bytes around the borders of the blocks that SHA-256 takes.
LONGER = st.integers(0, 300).map(lambda length: hashlib.shake_128(b"seed").digest(512 + length))
PIECES = st.binary(max_size=200) | LONGER


def test_the_code_is_compiled_wherever_there_is_a_compiler() -> None:
    headers = Path(sysconfig.get_path("include"), "Python.h").is_file()
    if not headers or not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("no compiler, or no Python.h")
    assert _compiled, "`make` builds it; a failed build leaves a line in the output of pip"


@pytest.fixture(params=KERNELS or [None])
def kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every way to compute SHA-256 that this processor has, in turn."""
    if request.param:
        _compiled.use_sha256(request.param)
    yield
    if request.param:
        _compiled.use_sha256(KERNELS[0])


@paired
@pytest.mark.usefixtures("kernel")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from("abtw"), PIECES, PIECES), max_size=8))
def test_two_hashes_that_share_a_core_are_those_of_hashlib(steps: list[tuple[str, bytes, bytes]]) -> None:
    one, other = _compiled.Sha256(), _compiled.Sha256()
    right = hashlib.sha256(), hashlib.sha256()
    for step, first, second in steps:
        if step == "a":
            one.update(first)
        elif step == "b":
            other.update(second)
        elif step == "t":
            one.update_with(first, other, second)
        else:
            other.update_with(second, one, first)
        if step != "b":
            right[0].update(first)
        if step != "a":
            right[1].update(second)
        assert (one.digest(), other.digest()) == (right[0].digest(), right[1].digest())


@paired
@pytest.mark.usefixtures("kernel")
def test_a_hash_knows_the_published_values() -> None:
    """FIPS 180-4's examples, and a million times `a`."""
    for message, digest in (
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (b"a" * 1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ):
        alone, one, other = _compiled.Sha256(), _compiled.Sha256(), _compiled.Sha256()
        alone.update(message)
        one.update_with(message, other, message)
        assert {alone.digest().hex(), one.digest().hex(), other.digest().hex()} == {digest}


@paired
@pytest.mark.usefixtures("kernel")
def test_a_hash_cannot_be_updated_with_itself_nor_by_two_threads_at_once() -> None:
    one = _compiled.Sha256()
    with pytest.raises(RuntimeError, match="another thread"):
        one.update_with(b"x", one, b"y")
    assert one.digest() == hashlib.sha256().digest()
    data, refused, done = bytes(64 << 20), [], []

    def update() -> None:
        try:
            one.update(data)
            done.append(True)
        except RuntimeError as error:
            refused.append(error)

    threads = [threading.Thread(target=update) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # However they met: each either went in whole or not at all.
    assert len(done) + len(refused) == 4
    assert one.digest() == hashlib.sha256(data * len(done)).digest()


@pytest.mark.parametrize("made", MADE)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=30), st.data())
def test_the_digests_of_pieces_are_those_of_xxhash(made: Any, lengths: list[int], data: st.DataObject) -> None:
    ends = array("Q", [5])
    for length in lengths:
        ends.append(ends[-1] + length)
    first = data.draw(st.integers(0, len(lengths)))
    last = data.draw(st.integers(first, len(lengths)))
    blob = hashlib.shake_128(b"seed").digest(ends[-1])
    view = memoryview(blob)[ends[first] :]
    expected = [xxhash.xxh3_128_digest(blob[begin:end]) for begin, end in pairwise(ends[first : last + 1])]
    assert made.leaf_digests(view, ends, first, last) == b"".join(expected)


@pytest.mark.parametrize("made", MADE)
@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 20))
def test_segments_are_cut_into_leaves_from_their_own_start(made: Any, lengths: list[int], leaf: int) -> None:
    expected, at = [0], 0
    for length in lengths:
        expected += [at + min(done + leaf, length) for done in range(0, length, leaf)]
        at += length
    assert list(array("Q", made.leaf_ends(lengths, leaf))) == expected


@pytest.mark.parametrize("made", MADE)
@given(st.binary(max_size=40), st.lists(st.integers(0, 50), max_size=9), st.integers(1, 20))
def test_the_digest_of_a_segment_is_over_those_of_its_leaves(
    made: Any, domain: bytes, lengths: list[int], leaf: int
) -> None:
    counts = [-(-length // leaf) for length in lengths]
    leaves = [xxhash.xxh3_128_digest(b"%d" % number) for number in range(sum(counts))]
    expected, at = b"", 0
    for length, count in zip(lengths, counts, strict=True):
        fields = [domain, length.to_bytes(8, "little"), count.to_bytes(8, "little")]
        fields += [(16).to_bytes(8, "little") + digest for digest in leaves[at : at + count]]
        expected += xxhash.xxh3_128_digest(b"".join(fields))
        at += count
    assert made.segment_digests(domain, lengths, leaf, b"".join(leaves)) == expected
    for wrong in (b"".join(leaves) + bytes(16), b"".join(leaves[1:]) if leaves else bytes(1)):
        with pytest.raises(ValueError, match="digests of all leaves"):
            made.segment_digests(domain, lengths, leaf, wrong)


U64 = st.integers(0, (1 << 64) - 1)
ROW = st.tuples(
    st.text(max_size=5) | st.binary(max_size=5), U64, st.lists(U64, max_size=3).map(tuple),
    st.binary(min_size=16, max_size=16),
)  # fmt: skip


@pytest.mark.parametrize("made", MADE)
@given(st.lists(ROW, max_size=9), st.randoms(use_true_random=False), st.booleans())
def test_rows_are_packed_as_the_layout_says(made: Any, rows: list[Any], random: Any, ordered: bool) -> None:
    def integer(value: int) -> bytes:
        return value.to_bytes(8, "little")

    order = list(range(len(rows)))
    random.shuffle(order)
    expected = b""
    for name, number, shape, digest in [rows[place] for place in order] if ordered else rows:
        raw = name.encode() if isinstance(name, str) else name
        expected += integer(len(raw)) + raw + integer(number) + integer(len(shape)) + b"".join(map(integer, shape))
        expected += integer(16) + digest
    names, numbers, shapes = ([row[field] for row in rows] for field in range(3))
    digests = b"".join(row[3] for row in rows)
    assert made.pack_rows("sqtd", order if ordered else None, names, numbers, shapes, digests) == expected


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    ("pattern", "columns"),
    [
        ("sq", (["a"], [-1])),
        ("sq", (["a"], [1 << 64])),
        ("st", (["a"], [(1 << 64,)])),
        ("st", (["a"], [(-1,)])),
        ("s", (["\ud800"],)),
    ],
)
def test_what_no_layout_holds_is_refused_alike(made: Any, pattern: str, columns: tuple[Any, ...]) -> None:
    """It comes from saved scans that somebody edited."""
    with pytest.raises((ValueError, OverflowError)):
        made.pack_rows(pattern, None, *columns)


@compiled
@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.leaf_digests(memoryview(b"abc"), array("Q", [0, 4]), 0, 1),
        lambda c: c.leaf_digests(memoryview(b"abc"), array("Q", [2, 1]), 0, 1),
        lambda c: c.leaf_digests(memoryview(b"abc"), array("Q", [0, 1]), 0, 2),
        lambda c: c.leaf_digests(memoryview(b"abc"), array("Q", [0, 1]), -1, 1),
        lambda c: c.leaf_digests(memoryview(b"abc"), array("Q"), 0, 0),
        lambda c: c.leaf_ends([-1], 1),
        lambda c: c.leaf_ends([1], 0),
        lambda c: c.leaf_ends([1 << 63], 1),
        lambda c: c.leaf_ends([1 << 64], 1),
        lambda c: c.segment_digests(b"", [1], 1, b"short"),
        lambda c: c.segment_digests(b"", [1], 0, bytes(16)),
        lambda c: c.segment_digests(b"", ["a"], 1, bytes(16)),
        lambda c: c.segment_digests(b"", [-1], 1, bytes(16)),
        lambda c: c.segment_digests(b"", [1 << 64], 1, bytes(16)),
        lambda c: c.segment_digests(b"", (1,), 1, bytes(16)),
        lambda c: c.pack_rows("sd", None, ["a"], bytes(15)),
        lambda c: c.pack_rows("sq", None, ["a"], [1, 2]),
        lambda c: c.pack_rows("sq", None, ["a"], [-1]),
        lambda c: c.pack_rows("sq", None, ["a"], [1 << 64]),
        lambda c: c.pack_rows("st", None, ["a"], [(1 << 64,)]),
        lambda c: c.pack_rows("st", None, ["a"], [[1]]),
        lambda c: c.pack_rows("sq", [1], ["a"], [1]),
        lambda c: c.pack_rows("sq", [0, 0], ["a"], [1]),
        lambda c: c.pack_rows("s", None, ["a"], [1]),
        lambda c: c.pack_rows("x", None, ["a"]),
        lambda c: c.pack_rows("s", None, [None]),
        lambda c: c.pack_rows("s", None, ["\ud800"]),
        lambda c: c.use_sha256("md5"),
        lambda c: c.use_sha256(None),
        lambda c: c.header_columns(b"{}", 3),
        lambda c: c.header_columns(memoryview(b"{}"), 0),
        lambda c: c.Names(),
        lambda c: c.Names.joined([]),
        lambda c: c.Names.joined((["a"],)),
        lambda c: c.Names.joined(()).behind("ü"),
        lambda c: c.pack_rows("sq", b"abc", ["a"], [1]),
        lambda c: c.pack_rows("sq", b"\1\0\0\0", ["a"], [1]),
    ],
)
def test_what_does_not_fit_is_refused_and_never_read(call: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError, UnicodeEncodeError)):
        call(_compiled)


ENTRY = '{"dtype":"F32","shape":[4],"data_offsets":[0,16]}'


@compiled
@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("{}", []),
        ('{"w":' + ENTRY + "}", ["w"]),
        (' { "w" : { "data_offsets" : [0, 16] , "shape":[ 4 ],\n"dtype":"F32"} } \n', ["w"]),
        ('{"__metadata__":{"format":"pt"},"ü":' + ENTRY + "}", ["ü"]),
        ('{"w":' + ENTRY + ',"__metadata__":{}}', ["w"]),
    ],
)
def test_headers_as_their_writers_make_them_are_read_by_column(header: str, names: list[str]) -> None:
    raw = header.encode()
    columns = _compiled.header_columns(b"01234567" + raw, 8)
    assert columns is not None
    assert [*columns[0]] == names
    assert columns[3] == [8 + len(raw)] * len(names)


@compiled
@pytest.mark.parametrize(
    "header",
    [
        "", "{", "[]", "{} x", '{"w":' + ENTRY + ",}", '{"w":' + ENTRY, '{"w":null}', '{"a\\u0062":' + ENTRY + "}",
        '{"w":' + ENTRY.replace("[4]", "[4.0]") + "}", '{"w":' + ENTRY.replace("[4]", "[-0]") + "}",
        '{"w":' + ENTRY.replace("[4]", "[04]") + "}", '{"w":' + ENTRY.replace("[4]", "[4,]") + "}",
        '{"w":' + ENTRY.replace("[4]", "[1000000000000000000]") + "}", '{"w":' + ENTRY.replace("[0,", "[16,") + "}",
        '{"w":' + ENTRY.replace("[0,", "[4,") + "}", '{"w":' + ENTRY.replace('"shape":[4]', '"dtype":"F32"') + "}",
        '{"w":' + ENTRY.replace('"shape":[4],', "") + "}", '{"w":' + ENTRY.replace("}", ',"x":1}') + "}",
        '{"__metadata__":{"a":1},"w":' + ENTRY + "}", '{"__metadata__":{},"__metadata__":{},"w":' + ENTRY + "}",
        '{"w":' + ENTRY + ',"x":' + ENTRY.replace("[0,16]", "[20,36]") + "}",
        '{"w":' + ENTRY + ',"x":' + ENTRY.replace("[0,16]", "[16,36]") + "}",
    ],
)  # fmt: skip
def test_anything_odd_in_a_header_is_left_to_the_careful_parser(header: str) -> None:
    assert _compiled.header_columns(header.encode(), 0) is None


def header_of(names: list[str]) -> bytes:
    table = {name: {"dtype": "U8", "shape": [1], "data_offsets": [at, at + 1]} for at, name in enumerate(names)}
    return json.dumps(table).encode()


SHOWN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters='"\\'), max_size=6)


#: Names that are told apart by their first bytes, by those after what all begin with, or only far behind.
ALIKE = st.tuples(st.sampled_from(["", "model.", "model.layers.1", "model.layers.12."]), SHOWN).map("".join)


@compiled
@given(st.lists(st.lists(ALIKE.filter(lambda name: name != "__metadata__"), unique=True, max_size=8), max_size=4))
def test_names_that_stay_in_their_headers_are_those_names(files: list[list[str]]) -> None:
    columns = [_compiled.header_columns(header_of(names), 0)[0] for names in files]  # type: ignore[index]
    assert [[*column] for column in columns] == files
    together = [name for names in files for name in names]
    packed = _compiled.Names.joined(tuple(columns))
    del columns  # the headers stay as long as their names
    assert [*packed] == together
    assert packed.unique() == (len({*together}) == len(together))
    order = packed.order()
    assert (order is not None) == packed.unique()
    if order is not None:
        assert [together[place] for place in array("I", order)] == sorted(together)
        numbers = list(range(len(together)))
        expected = plain.pack_rows("sq", list(array("I", order)), together, numbers)
        assert _compiled.pack_rows("sq", order, packed, numbers) == expected
    assert [*packed.behind("first")] == ["first", *together]
    assert [packed[place - len(together)] for place in range(len(together))] == together


def test_columns_of_names_are_asked_alike_whether_they_are_packed_or_not() -> None:
    one, other = ["b", "a"], ["c", "a"]
    headers = [header_columns(header_of(names), 0) for names in (one, other)]
    for columns in ([one, other], [made[0] for made in headers if made]):
        if columns:
            both = names_module.joined(columns)
            assert [*both] == ["b", "a", "c", "a"]
            assert not names_module.are_unique(both)
            assert names_module.order_of(both) is None
            assert names_module.order_of(columns[0]) in ([1, 0], array("I", [1, 0]).tobytes())
            assert [*names_module.behind("", columns[1])] == ["", "c", "a"]
    assert names_module.joined([]) == []


@compiled
def test_headers_whose_names_are_no_plain_ascii_give_text() -> None:
    columns = _compiled.header_columns('{"ü":'.encode() + ENTRY.encode() + b"}", 0)
    assert columns is not None
    assert columns[0] == ["ü"]
    assert _compiled.header_columns(b'{"\xff":' + ENTRY.encode() + b"}", 0) is None


PROGRAM = "import sys; {}\nfrom ckpt_tui.__main__ import main\nsys.exit(main())"
WITHOUT = "sys.modules['ckpt_tui.native._compiled'] = None"


def test_a_scan_says_the_same_with_and_without_compiled_code(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model", shards=5, tensors=40)
    said = []
    for before in ("", WITHOUT):
        for extra in ([], ["--fast"]):
            run = subprocess.run(
                [sys.executable, "-c", PROGRAM.format(before), "scan", "--no-cache", "--segments", "--json", *extra,
                 str(tmp_path / "model")],
                capture_output=True, check=False, timeout=60, env={**os.environ, "HOME": str(tmp_path)},
            )  # fmt: skip
            assert run.returncode == 0, run.stderr
            result = json.loads(run.stdout)
            for field in ("created", "totals"):
                del result[field]
            for file in result["files"]:
                del file["hashed_at"]
            said.append(result)
    assert said[:2] == said[2:]
    assert said[0] != said[1]


@pytest.mark.parametrize(("before", "words"), [("", ""), (WITHOUT, "no compiled code, so slower")])
def test_the_version_says_what_this_installation_hashes_with(before: str, words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before), "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout.startswith("ckpt-tui, version ")
    assert words in run.stdout
    assert before or ("slower" in run.stdout) == (_compiled is None)
