"""A scan as a document: what it came to, the digests, each file, what was found, and what is on record. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.files import Role, Source, State
from ..facts.outcome import Exit, scan_code
from ..present import units, words
from ..present.glyphs import state_mark
from .agreements import moment
from .document import Block, Code, Document, Heading, Inline, Line, Listing, Paragraph, Part, Room, Table, line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..facts.files import FileResult
    from ..facts.scan import ScanResult

_TONES = {Exit.SAME: "good", Exit.DIFFERENT: "bad"}
_DIGITS = 12


def document(result: ScanResult, room: Room) -> Document:
    """The whole report; what does not fit the room is counted where it would stand."""
    return Document(
        title=f"ckpt-tui: {words.scan_word(result).lower()}",
        word=words.scan_word(result),
        tone=_TONES.get(scan_code(result), "warn"),
        sentence=room.cut(words.scan_headline(result, result.created)),
        parts=tuple(_parts(result, room)),
    )


def _parts(result: ScanResult, room: Room) -> Iterator[Part]:
    ref = result.checkpoint
    named = "" if ref.repo_id is None else f"{ref.repo_id}@{ref.revision or ''}"
    facts: list[tuple[str, Inline]] = [
        ("checkpoint", Code(room.cut(ref.path))),
        ("repository", Code(room.cut(named))),
        ("host", Code(room.cut(result.host))),
        ("file system", Code(room.cut(result.file_system or ""))),
        ("when", moment(result.created)),
        ("tool", result.tool),
        ("identity", Code(result.identity) if result.identity else "not known"),
        ("content", Code(result.content) if result.content else "not known"),
        ("sha256 of all", Code(result.content_sha256 or "")),
        ("tensors", Code(result.logical_content or "")),
        ("sidecars", Code(result.sidecars) if result.sidecars else "not known"),
    ]
    yield Table(("", ""), tuple((line(label), line(fact)) for label, fact in facts if line(fact)), "<<")
    yield from _findings(result, room)
    yield from _files(result.files, room)
    yield from _broken(result.files, room)
    if result.warnings:
        yield Heading(2, ("Warnings",))
        yield _listing([line(room.cut(text)) for text in result.warnings], room)
    if result.not_compared:
        yield Heading(2, ("Not counted",))
        left_out = [line(Code(room.cut(one.name)), f" {units.size(one.size)}") for one in result.not_compared]
        yield Paragraph((f"{units.count(len(left_out), 'weight file')} that no index names",))
        yield _listing(left_out, room)


def _listing(items: Sequence[Line], room: Room) -> Listing:
    more = len(items) - room.items
    return Listing(tuple(items[: room.items]), f"and {more:,} more" if more > 0 else "")


def _findings(result: ScanResult, room: Room) -> Iterator[Part]:
    if not result.findings:
        return
    yield Heading(2, ("Findings",))
    yield _listing([line(f"{one.severity.value}: ", room.cut(one.message)) for one in result.findings], room)


def _files(files: Sequence[FileResult], room: Room) -> Iterator[Part]:
    """What needs somebody first, then weights, then by name."""
    yield Heading(2, (f"Files: {len(files):,}",))
    ordered = sorted(files, key=lambda file: (file.state is State.GOOD, file.role is not Role.WEIGHTS))
    rows = [
        (
            line(Code(room.cut(file.name))),
            (state_mark(file.state).word,),
            (f"{file.size:,}",),
            line({Source.READ: "read", Source.CACHE: "cache", None: ""}[file.source]),
            line(_recorded(file)),
            line(Code((file.sha256 or file.digest or "")[:_DIGITS])),
        )
        for file in ordered[: room.files]
    ]
    more = len(files) - len(rows)
    head = ("file", "state", "bytes", "digest from", "recorded hash", "digest")
    yield Table(head, tuple(rows), "<<><<<", f"and {units.count(more, 'more file')}" if more else "")


def _recorded(file: FileResult) -> str:
    if not file.claims:
        return ""
    kept = {True: "kept", False: "broken", None: "not checked"}[words.kept(file.claims)]
    by = words.recorded_by(file.claims)
    return f"{kept} ({by})" if by else kept


def _broken(files: Sequence[FileResult], room: Room) -> Iterator[Part]:
    """Hashes that are broken, whole, one below the other, as people compare them."""
    broken = [(file, claim) for file in files for claim in file.claims if claim.holds is False]
    if not broken:
        return
    yield Heading(2, ("Recorded hashes that are broken",))
    for file, claim in broken[: room.items]:
        yield Paragraph(line(Code(room.cut(file.name)), ", by ", room.cut(claim.origin)))
        computed = f"\ncomputed  sha256 {file.sha256}" if claim.algorithm == "sha256" and file.sha256 else ""
        yield Block(f"recorded  {claim.algorithm} {room.cut(claim.expected)}{computed}")
    more = len(broken) - room.items
    if more > 0:
        yield Paragraph((f"and {more:,} more",))
