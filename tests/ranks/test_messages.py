"""What may come from a peer: typed, bounded, and safe to show, or refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui import agreement
from ckpt_tui.facts.agreement import TableRow
from ckpt_tui.facts.files import Role, State
from ckpt_tui.present.safe import escape
from ckpt_tui.ranks import messages
from ckpt_tui.ranks.messages import Answer, BadMessage, Break, Files, Present, Tables, decode, encode

KINDS = [Answer, Break, Files, Present, Tables]


def answer(path: str) -> Answer:
    """An answer with this path."""
    return Answer(fingerprint=agreement.failed(1, "node", path, "no such folder"), at=1.0)


@given(st.text())
def test_an_escaped_name_goes_through_whole(name: str) -> None:
    told = answer(escape(name))
    assert decode(encode(told), Answer) == told


@pytest.mark.parametrize("path", ["/a\nb", "/\x1b]0;owned\x07", "/a\u202eb", "/a\\q", "/a\u200bb"])
def test_text_that_may_not_be_shown_is_refused_wherever_it_stands(path: str) -> None:
    with pytest.raises(BadMessage, match="shown"):
        decode(encode(answer(path)), Answer)
    row = TableRow(name=path, role=Role.WEIGHTS, size=1, state=State.GOOD, digest=None)
    with pytest.raises(BadMessage, match="shown"):
        decode(encode(Files(rows=(row,))), Files)
    with pytest.raises(BadMessage, match="shown"):
        decode(encode(Break(absent={1: path})), Break)


@given(st.binary(max_size=300), st.sampled_from(KINDS))
def test_no_bytes_are_worse_than_refused(raw: bytes, kind: type) -> None:
    try:
        decode(raw, kind)
    except BadMessage:
        return


def test_a_message_of_another_shape_is_refused() -> None:
    with pytest.raises(BadMessage):
        decode(msgspec.msgpack.encode({"fingerprint": 1, "at": "now"}), Answer)
    with pytest.raises(BadMessage):
        decode(b"\x91" * 100_000, Tables)


def test_a_message_that_is_too_long_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_BYTES", 10)
    with pytest.raises(BadMessage, match="bytes long"):
        decode(encode(answer("/a")), Answer)
