"""Laws of cutting and hashing: the blocks in which bytes come change nothing, and every byte lies in one segment."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ckpt_tui.checkpoint.model import Header, TensorEntry, Tensors
from ckpt_tui.digest import layout
from ckpt_tui.digest.cut import EXTENT, cut
from ckpt_tui.digest.pieces import LONGEST, Pieces
from ckpt_tui.facts.files import Segmentation, SegmentKind
from ckpt_tui.present.safe import escape
from tests.digest.plain import domain, integer, listed, sha256, string
from tests.support.checkpoints import noise

# Around the leaf's size, small, and nothing.
LENGTHS = st.one_of(
    st.integers(0, 9), st.just(0), st.integers(layout.LEAF - 2, layout.LEAF + 2), st.integers(0, 3 * layout.LEAF)
)


@settings(max_examples=40, deadline=None)
@given(st.lists(LENGTHS, max_size=6), st.randoms(use_true_random=False))
def test_pieces_cover_a_file_once_and_give_its_digests_in_whatever_order_they_come(
    lengths: list[int], random: Random
) -> None:
    raw = noise("layout", sum(lengths))
    expected, all_leaves, offset = [], [], 0
    for length in lengths:
        segment = raw[offset : offset + length]
        leaves = [layout.leaf_digest(segment[at : at + layout.LEAF]) for at in range(0, length, layout.LEAF)]
        expected.append(layout.segment_digest(length, leaves))
        all_leaves += leaves
        offset += length
    pieces = Pieces(lengths)
    ranges = list(pieces)
    assert [0, *(piece.offset + piece.length for piece in ranges)] == [*(piece.offset for piece in ranges), len(raw)]
    assert all(0 < piece.length <= LONGEST for piece in ranges)
    random.shuffle(ranges)
    for piece in ranges:
        pieces.hash(piece, memoryview(raw)[piece.offset : piece.offset + piece.length])
    assert pieces.segments() == b"".join(expected)
    assert bytes(pieces.leaves) == b"".join(all_leaves)


def test_neighbours_share_a_piece_as_far_as_it_holds_them() -> None:
    small, rest = layout.LEAF // 64, 5
    pieces = list(Pieces([small] * 64 + [2 * layout.LEAF + rest] + [0, 7]))
    assert [(piece.length, piece.last - piece.first) for piece in pieces] == [
        (64 * small + layout.LEAF, 65),
        (layout.LEAF + rest + 7, 3),
    ]


@st.composite
def headers(draw: st.DrawFn) -> Header:
    """A header whose tensors do not overlap; there may be gaps between them and empty ones among them."""
    raw = b"\0" * draw(st.integers(8, 40))
    end, tensors = len(raw), []
    for name in draw(st.lists(st.text(max_size=4), unique=True, max_size=6)):
        start = end + draw(st.sampled_from([0, 0, 3]))
        length = draw(st.integers(0, 20))
        tensors.append(TensorEntry(escape(name), "U8", (length,), start, length))
        end = start + length
    tensors.sort(key=lambda t: (t.offset, t.length, layout.name_bytes(t.name)))
    return Header(raw, Tensors.of(tensors), {})


@given(headers(), st.integers(-30, 30))
def test_every_byte_lies_in_one_segment_also_where_the_file_is_too_short_or_long(header: Header, more: int) -> None:
    size = max(0, header.needed + more)
    made = cut(header, size)
    end = 0
    for span in made.spans:
        assert span.offset == end
        end = span.offset + span.length
    assert end == size
    by_table = len(header.raw) <= size
    assert made.segmentation is (Segmentation.SAFETENSORS if by_table else Segmentation.EXTENTS)
    keys = [(span.offset, span.length, layout.name_bytes(span.name)) for span in made.spans]
    assert keys == sorted(keys)
    if by_table:
        named = {span.name for span in made.spans if span.kind is SegmentKind.TENSOR}
        assert named == {tensor.name for tensor in header.tensors}


def test_overlapping_tensors_make_a_file_opaque() -> None:
    tensors = Tensors.of([TensorEntry("a", "U8", (4,), 8, 4), TensorEntry("b", "U8", (4,), 10, 4)])
    assert cut(Header(b"\0" * 8, tensors, {}), 14).segmentation is Segmentation.EXTENTS


def test_a_dimension_that_no_integer_of_the_layout_holds_makes_a_file_opaque() -> None:
    tensors = Tensors.of([TensorEntry("a", "U8", (1 << 64, 0), 8, 0)])
    assert cut(Header(b"\0" * 8, tensors, {}), 8).segmentation is Segmentation.EXTENTS


def test_extents_are_16_mib_and_the_last_one_is_what_is_left() -> None:
    assert [(span.offset, span.length) for span in cut(None, 2 * EXTENT + 5).spans] == [
        (0, EXTENT),
        (EXTENT, EXTENT),
        (2 * EXTENT, 5),
    ]
    assert len(cut(None, 0).spans) == 0


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 9)), min_size=1, max_size=5, unique_by=lambda m: m[0]))
def test_the_order_in_which_files_are_handed_over_changes_nothing(files: list[tuple[bytes, int]]) -> None:
    members = [layout.Member(name, size, b"d" * 16) for name, size in files]
    assert layout.content(members) == layout.content(members[::-1])


def facts(*tensors: tuple[bytes, str, tuple[int, ...], bytes]) -> layout.TensorFacts:
    names, dtypes, shapes, digests = (list(column) for column in zip(*tensors, strict=True))
    return layout.TensorFacts([name.decode() for name in names], dtypes, shapes, b"".join(digests))


def test_dtype_and_shape_are_part_of_a_tensor() -> None:
    one, dtype, shape = ((b"w", *rest, b"d" * 16) for rest in (("F16", (2, 3)), ("BF16", (2, 3)), ("F16", (3, 2))))
    assert len({layout.logical_content(facts(tensor)) for tensor in (one, dtype, shape)}) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"", b"a", b"aa", b"b"]), st.sampled_from(["F16", "BF16", "F8_E4M3"]),
            st.sampled_from([(), (2,), (1, 2)]), st.sampled_from([b"d" * 16, b"c" * 16]),
        ),
        min_size=1, max_size=6,
    ),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_tensors_count_in_one_order_also_where_they_share_a_name(
    tensors: list[tuple[bytes, str, tuple[int, ...], bytes]], random: Random
) -> None:
    ordered = sorted(tensors)
    random.shuffle(tensors)
    written = [
        string(name) + string(dtype.encode()) + listed([integer(one) for one in shape]) + string(digest)
        for name, dtype, shape, digest in ordered
    ]
    assert layout.logical_content(facts(*tensors)) == sha256(domain("logical") + listed(written))
