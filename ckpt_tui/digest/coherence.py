"""A scan that comes from a file or from a peer: are its composites those of the rows beneath them? Pure.

A hand that changes a name, a size or a digest in one row, and nothing else, would otherwise leave a `content` that
agrees with everybody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.files import Role
from ..facts.scan import DIGEST_LAYOUT
from . import layout
from .cut import Span, Spans
from .survey import APART

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..facts.files import FileResult
    from ..facts.scan import ScanResult


def contradiction(result: ScanResult) -> str | None:
    """Which digest is not that of what stands beneath it, in words; None where all are, or are of another layout."""
    if result.digest_layout != DIGEST_LAYOUT:
        return None
    counted = [file for file in result.files if file.state not in APART]
    weights = [file for file in counted if file.role is Role.WEIGHTS]
    sidecars = [file for file in counted if file.role is Role.SIDECAR]
    composed = (
        ("content", result.content, layout.content, [file.digest for file in weights], weights),
        ("content_sha256", result.content_sha256, layout.content_sha256, [file.sha256 for file in weights], weights),
        ("sidecars", result.sidecars, layout.sidecars, [file.digest for file in sidecars], sidecars),
    )
    try:
        for word, said, compose, digests, files in composed:
            if said is not None and said != _hex(compose(_members(files, digests))):
                return f"its {word} is not that of the files that it lists"
        for file in result.files:
            if file.segment_table and file.digest != _file_digest(file):
                return f"the digest of {file.name} is not that of its segments"
    except (ValueError, OverflowError):  # no hex, or numbers that no layout holds
        return "it holds digests that are none"
    return None


def _members(files: Sequence[FileResult], digests: Sequence[str | None]) -> list[layout.Member]:
    """The files as members of a composite; ValueError where one has no digest, and the composite can be nobody's."""
    if None in digests:
        raise ValueError
    return [
        layout.Member(_raw(file), file.size, bytes.fromhex(digest or ""))
        for file, digest in zip(files, digests, strict=True)
    ]


def _raw(file: FileResult) -> bytes:
    return bytes.fromhex(file.name_bytes) if file.name_bytes else layout.name_bytes(file.name)


def _file_digest(file: FileResult) -> str:
    table = file.segment_table or ()
    spans = Spans.of(Span(one.kind, one.name, one.offset, one.length) for one in table)
    return layout.file_digest(spans, b"".join(bytes.fromhex(one.digest) for one in table)).hex()


def _hex(digest: bytes | None) -> str | None:
    return digest.hex() if digest else None
