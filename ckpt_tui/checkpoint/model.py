"""What `locate` finds and `audit` fills in: the files of one checkpoint, before a tensor byte is read."""

from __future__ import annotations

import hashlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..facts.files import Claim, Finding, Role, Segmentation, State
from .columns import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from ..facts.scan import CheckpointRef, NotCompared
    from .outline import Outline


class TensorEntry(NamedTuple):
    """One tensor. `name` is escaped text; `offset` counts from the file's start, and like `length` it is in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    length: int


class Tensors(Table[TensorEntry]):
    """The tensors of a file by column. Columns are of one length, and never changed."""

    __slots__ = ()

    def __init__(
        self,
        names: Sequence[str] = (),
        dtypes: Sequence[str] = (),
        shapes: Sequence[tuple[int, ...]] = (),
        offsets: Sequence[int] = (),
        lengths: Sequence[int] = (),
    ) -> None:
        super().__init__(TensorEntry, (names, dtypes, shapes, offsets, lengths))

    @classmethod
    def of(cls, entries: Iterable[TensorEntry]) -> Tensors:
        """The table of these rows."""
        columns: Sequence[Sequence[Any]] = [*zip(*entries, strict=True)]
        return cls(*columns)

    @property
    def names(self) -> Sequence[str]:
        """Escaped text."""
        return self.columns[0]

    @property
    def dtypes(self) -> Sequence[str]:
        """As the header writes them, as escaped text."""
        return self.columns[1]

    @property
    def shapes(self) -> Sequence[tuple[int, ...]]:
        """In elements."""
        return self.columns[2]

    @property
    def offsets(self) -> Sequence[int]:
        """In bytes from the file's start."""
        return self.columns[3]

    @property
    def lengths(self) -> Sequence[int]:
        """In bytes."""
        return self.columns[4]


class Header:
    """A parsed safetensors header: `raw` is the length prefix and the JSON as they lie in the file.

    With an `outline` it was parsed before, and is parsed again only when somebody asks for its tensors.
    """

    __slots__ = ("_parsed", "_sha256", "outline", "raw")

    def __init__(
        self,
        raw: bytes,
        tensors: Tensors | None = None,
        metadata: dict[str, str] | None = None,
        *,
        outline: Outline | None = None,
    ) -> None:
        self.raw = raw
        self.outline = outline
        self._sha256 = outline.sha256 if outline else None
        self._parsed = None if tensors is None else (tensors, metadata or {})

    @property
    def tensors(self) -> Tensors:
        """In order of (offset, length, name bytes)."""
        return self._content()[0]

    @property
    def metadata(self) -> dict[str, str]:
        """`__metadata__`, as escaped text."""
        return self._content()[1]

    @property
    def needed(self) -> int:
        """The file size in bytes that this header asks for."""
        if self.outline:
            return self.outline.needed
        tensors = self.tensors  # in order, and none overlaps
        return tensors.offsets[-1] + tensors.lengths[-1] if tensors else len(self.raw)

    @property
    def lengths(self) -> Collection[int]:
        """Each length in bytes that some tensor has."""
        return self.outline.lengths if self.outline else {*self.tensors.lengths}

    @property
    def sha256(self) -> bytes:
        """SHA-256 of `raw`."""
        if self._sha256 is None:
            self._sha256 = hashlib.sha256(self.raw).digest()
        return self._sha256

    def _content(self) -> tuple[Tensors, dict[str, str]]:
        if self._parsed is None:
            from .header import HeaderError, parse_header

            header = parse_header(self.raw).header
            if header is None:
                raise HeaderError("a header that was sound is no more")
            self._parsed = header.tensors, header.metadata
        return self._parsed


class CheckpointFile(NamedTuple):
    """One weight file or sidecar.

    `raw_name` are the bytes of its name relative to the root (`/` between parts), `name` the same as escaped text;
    `path` opens it. `state` is what the audit knows without reading tensors; `header` is there only for safetensors
    files whose header parses. A file that is `missing` has size 0.
    """

    name: str
    raw_name: bytes
    path: Path
    role: Role
    size: int
    state: State
    segmentation: Segmentation
    header: Header | None = None
    error: str | None = None
    #: Not checked yet: `holds` is None.
    claims: tuple[Claim, ...] = ()


class Checkpoint(NamedTuple):
    """A checkpoint as it lies on disk. `files` holds weights and sidecars in order of name bytes."""

    ref: CheckpointRef
    root: Path
    files: tuple[CheckpointFile, ...]
    findings: tuple[Finding, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    #: Whether these are all its weight files: no index, manifest or part of it is broken or not there, which might
    #: name others. Without that no digest speaks for the whole.
    settled: bool = True
    #: The bytes of the indexes and manifests by which the files were found, by name (escaped text).
    named_by: Mapping[str, bytes] = MappingProxyType({})

    @property
    def weights(self) -> tuple[CheckpointFile, ...]:
        """The weight files, in order of name bytes."""
        return tuple(file for file in self.files if file.role is Role.WEIGHTS)

    @property
    def sidecars(self) -> tuple[CheckpointFile, ...]:
        """Config, index, tokenizer and their like, in order of name bytes."""
        return tuple(file for file in self.files if file.role is Role.SIDECAR)
