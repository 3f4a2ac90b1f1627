"""What metadata alone says of a checkpoint: its identity, and the table that ranks exchange where identities differ."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

from ..checkpoint.opening import denied, open_regular
from ..facts.agreement import TableRow
from ..facts.files import Role, Segmentation, State
from . import layout
from .buffers import new_buffer
from .cut import cut
from .passes import Moved
from .reader import read_digests
from .validity import Wants

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..checkpoint.model import Checkpoint, CheckpointFile

#: Listed, and no part of the checkpoint: neither read nor counted.
APART = frozenset({State.EXTRA, State.IGNORED})
#: States of files that cannot be opened, or must not be.
UNOPENED = frozenset({State.MISSING, State.BROKEN_LINK, State.UNREADABLE, State.OUTSIDE}) | APART
#: States of a weight file that is not what its header says, or has none: an identity over it could pass for that of
#: the checkpoint, whose tensors it does not hold.
_MUTE = frozenset({State.BAD_HEADER, State.BAD_LAYOUT, State.NOT_WEIGHTS, State.TRUNCATED, State.OVERLONG}) | UNOPENED


class Survey(NamedTuple):
    """A checkpoint before any tensor byte is read.

    `header_table` holds what the identity covers: each weight file with the SHA-256 of its raw header (null for opaque
    files), config and index files with that of their bytes.
    """

    checkpoint: Checkpoint
    identity: str | None
    header_table: tuple[TableRow, ...]
    #: The file digests of config, index and manifest files as they were read for this survey, by name.
    metadata: dict[str, bytes]
    #: What kept one of them from being read, by name.
    errors: dict[str, str]


def is_metadata(raw_name: bytes) -> bool:
    """Whether the identity covers a sidecar: `config.json`, `model_index.json` and indexes, in any folder."""
    last = raw_name.rsplit(b"/", 1)[-1]
    return last in {b"config.json", b"model_index.json"} or last.endswith(b".index.json")


def take(checkpoint: Checkpoint, advance: Callable[[int], None]) -> Survey:
    """Read config files, and put the identity together; `advance` is called after each block.

    Indexes are not read again: what counts are the bytes by which the files were found.
    """
    read: dict[str, _Digests] = {}
    errors: dict[str, str] = {}
    counted = [file for file in checkpoint.files if file.state not in APART]
    weights = [file for file in counted if file.role is Role.WEIGHTS]
    sidecars = [file for file in counted if file.role is Role.SIDECAR]
    covered = [file for file in sidecars if is_metadata(file.raw_name)]
    buffer = new_buffer(rooms=2)
    for file in sidecars:
        raw = checkpoint.named_by.get(file.name)
        if file.state in UNOPENED or (raw is None and not is_metadata(file.raw_name)):
            continue
        try:
            read[file.name] = _read(file, buffer, advance) if raw is None else _digests_of(raw, file.size)
        except Moved:
            errors[file.name] = "it changed while it was read"
        except OSError as error:
            errors[file.name] = denied(file.path, error)
    return Survey(
        checkpoint=checkpoint,
        identity=_identity(weights, covered, read) if checkpoint.settled else None,
        header_table=tuple(
            _row(file, read.get(file.name), unreadable=file.name in errors)
            for file in sorted(weights + covered, key=lambda file: file.raw_name)
        ),
        metadata={name: digests.file for name, digests in read.items()},
        errors=errors,
    )


class _Digests(NamedTuple):
    """Of a small file."""

    file: bytes
    sha256: bytes | None


def _digests_of(raw: bytes, size: int) -> _Digests:
    """Those of a file whose bytes are at hand; `size` is what its stat said later."""
    if len(raw) != size:
        raise Moved("size")
    spans, view = cut(None, len(raw)).spans, memoryview(raw)
    pairs = zip(spans.offsets, spans.lengths, strict=True)
    segments = b"".join(layout.segment_of(view[offset : offset + length]) for offset, length in pairs)
    return _Digests(layout.file_digest(spans, segments), hashlib.sha256(raw).digest())


def _read(file: CheckpointFile, buffer: memoryview, advance: Callable[[int], None]) -> _Digests:
    descriptor = open_regular(file.path)
    try:
        if os.fstat(descriptor).st_size != file.size:
            raise Moved("size")
        spans = cut(None, file.size).spans
        digests = read_digests(descriptor, file.size, spans, wants=Wants(), buffer=buffer, advance=advance)
        return _Digests(digests.file, digests.sha256)
    finally:
        os.close(descriptor)


def _header_sha256(file: CheckpointFile) -> bytes:
    return file.header.sha256 if file.header else hashlib.sha256(b"").digest()


def _identity(weights: list[CheckpointFile], covered: list[CheckpointFile], read: dict[str, _Digests]) -> str | None:
    """The identity, where every file that it covers has told its metadata."""
    if any(file.state in _MUTE for file in weights):
        return None
    members = []
    for file in covered:
        digests = read.get(file.name)
        if digests is None or digests.sha256 is None:
            return None
        members.append(layout.Member(file.raw_name, file.size, digests.sha256))
    headers = [
        layout.HeaderFact(file.raw_name, file.size, len(file.header.raw) if file.header else 0, _header_sha256(file))
        for file in weights
    ]
    digest = layout.identity(members, headers)
    return digest.hex() if digest else None


def _row(file: CheckpointFile, read: _Digests | None, *, unreadable: bool) -> TableRow:
    if file.role is Role.WEIGHTS:
        digest = _header_sha256(file) if file.header else None
    else:
        digest = read.sha256 if read else None
    return TableRow(
        name=file.name,
        role=file.role,
        size=file.size,
        state=State.UNREADABLE if unreadable else file.state,
        digest=digest.hex() if digest else None,
        segmentation=Segmentation.SAFETENSORS if file.header else Segmentation.EXTENTS,
    )
