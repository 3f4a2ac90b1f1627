"""One file as the audit sees it: looked at, opened once, its header parsed, and its state named."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

from ..facts.files import Role, Segmentation, State
from ..present.safe import escape
from ..present.units import count
from .geometry import Problem, fit
from .header import PREFIX, HeaderError, Parsed, header_length, parse_header
from .holes import never_written
from .model import CheckpointFile, Header
from .names import RANK_FILE, Kind, kind_of
from .opening import Look, denied, open_regular, read_up_to
from .sniff import HEAD, pointer, sniff, sniff_text

if TYPE_CHECKING:
    from pathlib import Path

    from ..facts.files import Claim
    from .outline import Outline


class Inspected(NamedTuple):
    """A file, and what its header has to say beyond its state."""

    file: CheckpointFile
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def unopened(root: Path, name: str, role: Role, look: Look, claims: tuple[Claim, ...] = ()) -> CheckpointFile:
    """A file that is not opened, for the reason that `look` gives."""
    return CheckpointFile(
        name=escape(name),
        raw_name=os.fsencode(name),
        path=root / name,
        role=role,
        size=look.size,
        state=look.state,
        segmentation=Segmentation.EXTENTS,
        error=look.error,
        claims=claims,
    )


def inspect(  # noqa: PLR0917 - what is known of a file before it is opened
    root: Path, name: str, role: Role, look: Look, claims: tuple[Claim, ...] = (), outline: Outline | None = None
) -> Inspected:
    """Open a file that may be opened and find its state; no tensor byte is read.

    `outline` is what was remembered of its header: where the header is still that one it is not parsed.
    """
    file = unopened(root, name, role, look, claims)
    if look.state is not State.GOOD:
        return Inspected(file)
    try:
        fd = open_regular(file.path)
    except OSError as error:
        return Inspected(_ends(file, State.UNREADABLE, denied(file.path, error)))
    try:
        size = os.fstat(fd).st_size
        file = file._replace(size=size)
        if role is Role.SIDECAR:
            return Inspected(_sidecar(file, fd))
        if kind_of(file.path.name) in {Kind.OPAQUE, Kind.FOREIGN}:
            return Inspected(_opaque(file, fd))
        return _safetensors(file, fd, outline)
    except OSError as error:
        return Inspected(_ends(file, State.UNREADABLE, denied(file.path, error)))
    finally:
        os.close(fd)


def _sidecar(file: CheckpointFile, fd: int) -> CheckpointFile:
    found = pointer(read_up_to(fd, min(file.size, HEAD)))
    return _ends(file, State.NOT_WEIGHTS, found.words) if found else file


def _opaque(file: CheckpointFile, fd: int) -> CheckpointFile:
    # A rank that had nothing to save leaves an empty .distcp, and is right to.
    if file.size == 0 and file.path.suffix != RANK_FILE:
        return _ends(file, State.BAD_HEADER, "empty file")
    other = sniff_text(read_up_to(fd, min(file.size, HEAD)))
    return _ends(file, State.NOT_WEIGHTS, other) if other else file


def _safetensors(file: CheckpointFile, fd: int, outline: Outline | None) -> Inspected:
    prefix = read_up_to(fd, PREFIX)
    try:
        raw = read_up_to(fd, PREFIX + header_length(prefix, file.size))
        same = outline is not None and hashlib.sha256(raw).digest() == outline.sha256
        parsed = Parsed(Header(raw, outline=outline)) if same else parse_header(raw)
    except HeaderError as error:
        other = sniff(read_up_to(fd, min(file.size, HEAD)))
        state = State.NOT_WEIGHTS if other else State.BAD_HEADER
        words = other or (str(error) if file.size == 0 else f"{error} (file of {count(file.size, 'byte')})")
        return Inspected(_ends(file, state, words))
    if parsed.header is None:
        return Inspected(_ends(file, State.BAD_LAYOUT, _first(parsed)), parsed.problems, parsed.warnings)
    state, misfit = fit(parsed.header, file.size)
    unwritten = never_written(fd, parsed.header, file.size) if state is State.GOOD else None
    if unwritten:
        state, misfit = State.SUSPECT, unwritten
    whole = file._replace(state=state, error=misfit, header=parsed.header, segmentation=Segmentation.SAFETENSORS)
    return Inspected(whole, (), parsed.warnings)


def _first(parsed: Parsed) -> str:
    more = len(parsed.problems) - 1
    return parsed.problems[0].message + (f" (and {count(more, 'problem')} more)" if more else "")


def _ends(file: CheckpointFile, state: State, error: str) -> CheckpointFile:
    return file._replace(state=state, error=error)
