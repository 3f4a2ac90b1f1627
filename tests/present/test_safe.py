"""Every name becomes one safe line, and can be had back."""

from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckpt_tui.facts.outcome import CkptError
from ckpt_tui.present import safe

names = st.binary(max_size=40).map(os.fsdecode) | st.text(st.characters(codec="utf-8"), max_size=40)


@given(names)
def test_escaping_is_reversible(name: str) -> None:
    assert safe.unescape(safe.escape(name)) == name


@given(names)
def test_escaped_text_is_one_visible_line(name: str) -> None:
    text = safe.escape(name)
    assert text.splitlines() in ([], [text])
    assert not {unicodedata.category(char) for char in text} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    text.encode("utf-8")


@given(names, names)
def test_two_names_are_equal_exactly_when_their_escaped_forms_are(one: str, other: str) -> None:
    assert (safe.escape(one) == safe.escape(other)) == (one == other)


@given(names)
def test_what_escape_makes_is_safe(name: str) -> None:
    assert safe.is_safe(safe.escape(name))


@pytest.mark.parametrize("text", ["\x1b[31m", "a\nb", "\u202e", "\\q", "\\x1", "\udcff", "\\U00ffffff", "a\u00a0b"])
def test_what_escape_cannot_have_made_is_not_safe(text: str) -> None:
    assert not safe.is_safe(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model.safetensors", "model.safetensors"),
        ("with space", "with space"),
        ("line\nbreak\ttab", "line\\nbreak\\ttab"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("back\\slash", "back\\\\slash"),
        (os.fsdecode(b"\xff\xfe"), "\\udcff\\udcfe"),
        ("right\u202eleft", "right\\u202eleft"),
        ("[/b]<b>", "[/b]<b>"),
        ("Привет-é-e\u0301-😀", "Привет-é-e\u0301-😀"),
    ],
)
def test_names_from_public_reports(name: str, text: str) -> None:
    assert safe.escape(name) == text


def test_an_os_error_is_told_by_its_code() -> None:
    assert safe.error_text(PermissionError(13, "x", "/secret")) == "EACCES: Permission denied"
    assert safe.error_text(ValueError("a\x1bb")) == "a\\x1bb"


def test_what_we_raise_ourselves_is_not_escaped_twice_and_what_others_raise_is() -> None:
    assert safe.error_text(CkptError("a\\x1b: no such folder")) == "a\\x1b: no such folder"
    assert safe.error_text(CkptError("raw \x1b")) == "raw \\x1b"
    assert safe.error_text(ValueError("a\\b")) == "a\\\\b"
