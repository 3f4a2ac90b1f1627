"""What a file holds that was named like weights and is something else, from its first bytes."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..present.units import count

#: As many first bytes as `sniff` looks at.
HEAD = 1024

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\r?\n(?:ext-[^\n]*\n)*"
    rb"oid sha256:([0-9a-f]{64})\r?\nsize (\d{1,18})\r?\n?"
)
_MAGIC = (
    (b"PK\x03\x04", "a zip archive (as torch.save writes: pickle inside, not opened)"),
    (b"\x80\x02", "a pickle, not opened"),
    (b"\x80\x03", "a pickle, not opened"),
    (b"\x80\x04", "a pickle, not opened"),
    (b"\x80\x05", "a pickle, not opened"),
    (b"GGUF", "a GGUF file"),
    (b"\x00\x05\x16\x07", "an AppleDouble file (macOS metadata)"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"%PDF-", "a PDF document"),
)


class Pointer(NamedTuple):
    """A git-lfs pointer: three lines of text that stand for the real file."""

    oid: str
    size: int

    @property
    def words(self) -> str:
        """What it is, what it stands for, and what to do."""
        return f"a git-lfs pointer for {count(self.size, 'byte')} (sha256 {self.oid[:12]}…): run `git lfs pull`"


def pointer(head: bytes) -> Pointer | None:
    """The git-lfs pointer that these bytes are, LF or CRLF."""
    match = _POINTER.match(head)
    return Pointer(match[1].decode(), int(match[2])) if match else None


def sniff(head: bytes) -> str | None:
    """What these first bytes are, in words; None when they are nothing known."""
    for magic, words in _MAGIC:
        if head.startswith(magic):
            return words
    if head[257:262] == b"ustar":
        return "a tar archive"
    return sniff_text(head)


def sniff_text(head: bytes) -> str | None:
    """The text that lies where weights of any format should: a git-lfs pointer or an error page."""
    found = pointer(head)
    if found is not None:
        return found.words
    start = head.lstrip()[:64].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head")):
        return "an HTML page (a download that got an error page or a login)"
    if start.startswith(b"<?xml"):
        return "an XML document (a download that got an error)"
    # A safetensors length prefix has zeros by its eighth byte; text has none.
    if start.startswith((b"{", b"[")) and 0 not in head[:16]:
        return "JSON text (a download that got an error?)"
    return None
