"""Made-up checkpoints and what their scans would say: a model small enough to judge by hand."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ckpt_tui.agreement import Testimony as Said
from ckpt_tui.agreement import content_table, fingerprint, judge
from ckpt_tui.facts.agreement import Agreement, Fingerprint, Stage
from ckpt_tui.facts.files import (
    Claim,
    FileResult,
    Finding,
    Role,
    Segment,
    Segmentation,
    SegmentKind,
    Source,
    State,
)
from ckpt_tui.facts.scan import SCAN_SCHEMA, CheckpointKind, CheckpointRef, NotCompared, ScanResult, Totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEADER_BYTES = 64


def digest(*parts: object, width: int = 32) -> str:
    """A stand-in for a digest: equal for equal parts."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:width]


@dataclass(frozen=True)
class Shard:
    """A weight file: tensors by name, each with the word that stands for its bytes."""

    tensors: tuple[tuple[str, str], ...]
    metadata: str = ""
    state: State = State.GOOD
    claims: tuple[Claim, ...] = ()
    cut: Segmentation = Segmentation.SAFETENSORS

    @property
    def size(self) -> int:
        """Eight bytes a tensor."""
        return HEADER_BYTES + len(self.metadata) + 8 * len(self.tensors)

    def segments(self) -> tuple[Segment, ...]:
        """Header and tensors, as a scan cuts them."""
        start = HEADER_BYTES + len(self.metadata)
        names = [name for name, _ in self.tensors]
        header = Segment(
            kind=SegmentKind.HEADER, name="", offset=0, length=start, digest=digest("header", names, self.metadata)
        )
        return header, *(
            Segment(
                kind=SegmentKind.TENSOR,
                name=name,
                offset=start + 8 * place,
                length=8,
                digest=digest("tensor", word),
                dtype="F32",
                shape=(2,),
            )
            for place, (name, word) in enumerate(self.tensors)
        )

    @property
    def readable(self) -> bool:
        """Whether a digest of the whole file can be had."""
        return self.state in {State.GOOD, State.DIGEST_MISMATCH, State.SUSPECT}


@dataclass(frozen=True)
class Model:
    """A checkpoint: shards and sidecars by name."""

    shards: Mapping[str, Shard]
    sidecars: Mapping[str, str] = field(default_factory=lambda: {"config.json": "c", "tokenizer.json": "t"})
    sidecar_claims: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict)
    sidecar_states: Mapping[str, State] = field(default_factory=dict)
    repo_id: str | None = None
    revision: str | None = None
    findings: tuple[Finding, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    warnings: tuple[str, ...] = ()

    def but(self, **changes: Any) -> Model:
        """The same with other fields."""
        return replace(self, **changes)

    def with_shard(self, name: str, **changes: Any) -> Model:
        """The same with one shard changed."""
        return replace(self, shards={**self.shards, name: replace(self.shards[name], **changes)})


S1, S2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def tiny(**changes: Any) -> Model:
    """Two shards of five tensors."""
    shards = {
        S1: Shard((("embed", "e"), ("layers.0.w", "0"), ("layers.0.b", "0b"))),
        S2: Shard((("layers.1.w", "1"), ("lm_head", "h"))),
    }
    return Model(shards).but(**changes)


def hub_claim(*, holds: bool, expected: str = "", origin: str = "blob") -> Claim:
    """A hash that the hub recorded."""
    return Claim(kind="hub-blob", algorithm="sha256", expected=expected, holds=holds, origin=origin)


def recorded(model: Model, revision: str = "a" * 40, repo: str = "org/tiny", *, breaks: Sequence[str] = ()) -> Model:
    """The model as a hub snapshot whose recorded hashes hold, but for the names in `breaks`."""
    shards = {
        name: replace(
            shard,
            claims=(hub_claim(holds=name not in breaks),),
            state=State.DIGEST_MISMATCH if name in breaks else shard.state,
        )
        for name, shard in model.shards.items()
    }
    claims = {name: (hub_claim(holds=name not in breaks),) for name in model.sidecars}
    return model.but(shards=shards, sidecar_claims=claims, repo_id=repo, revision=revision)


def scan_of(
    model: Model, *, fast: bool = False, host: str = "a", copy: str | None = None, **changes: Any
) -> ScanResult:
    """What a scan of the model says."""
    files = [_shard_file(name, shard, fast=fast) for name, shard in sorted(model.shards.items())]
    files += [_sidecar_file(name, word, model, fast=fast) for name, word in sorted(model.sidecars.items())]
    whole = bool(model.shards) and all(shard.readable for shard in model.shards.values())
    decided = all(state not in {State.UNREADABLE, State.MISSING} for state in model.sidecar_states.values())
    headers = all(s.state not in {State.MISSING, State.UNREADABLE, State.NOT_WEIGHTS} for s in model.shards.values())
    bodies = [(file.name, file.size, file.digest) for file in files if file.role is Role.WEIGHTS]
    full = [(file.name, file.size, file.sha256) for file in files if file.role is Role.WEIGHTS]
    tensors = sorted(tensor for shard in model.shards.values() for tensor in shard.tensors)
    heads = [(name, shard.size, shard.segments()[0].digest) for name, shard in sorted(model.shards.items())]
    result = ScanResult(
        schema=SCAN_SCHEMA,
        host=host,
        tool="ckpt-tui 0",
        digest_layout=1,
        created=0.0,
        checkpoint=CheckpointRef(
            path=f"/models/{copy}", kind=CheckpointKind.FOLDER, repo_id=model.repo_id, revision=model.revision
        ),
        identity=digest("identity", heads, model.sidecars.get("config.json")) if headers and decided else None,
        content=digest("content", bodies) if whole else None,
        content_sha256=digest("sha256", full) if whole and not fast else None,
        logical_content=digest("logical", tensors) if whole else None,
        sidecars=digest("sidecars", sorted(model.sidecars.items())) if decided else None,
        files=tuple(files),
        findings=model.findings,
        not_compared=model.not_compared,
        totals=Totals(files=len(files), bytes=0, files_cached=0, bytes_read=0, seconds=0.0, threads=1),
        copy_id=copy,
        file_system="tmpfs",
        warnings=model.warnings,
    )
    import msgspec

    return msgspec.structs.replace(result, **changes)


def _shard_file(name: str, shard: Shard, *, fast: bool) -> FileResult:
    parts = [(s.kind, s.name, s.offset, s.length, s.digest) for s in shard.segments()]
    return FileResult(
        name=name,
        role=Role.WEIGHTS,
        size=0 if shard.state is State.MISSING else shard.size,
        state=shard.state,
        digest=digest(shard.cut, *parts) if shard.readable else None,
        segmentation=shard.cut,
        source=Source.READ if shard.readable else None,
        hashed_at=1.0 if shard.readable else None,
        segments=len(parts),
        claims=shard.claims,
        sha256=digest("bytes", *parts, width=64) if shard.readable and not fast else None,
    )


def _sidecar_file(name: str, word: str, model: Model, *, fast: bool) -> FileResult:
    state = model.sidecar_states.get(name, State.GOOD)
    claims = model.sidecar_claims.get(name, ())
    if any(claim.holds is False for claim in claims):
        state = State.DIGEST_MISMATCH
    known = state in {State.GOOD, State.DIGEST_MISMATCH, State.BAD_HEADER}
    return FileResult(
        name=name,
        role=Role.SIDECAR,
        size=10 + len(word),
        state=state,
        digest=digest("sidecar", word) if known else None,
        segmentation=Segmentation.EXTENTS,
        source=Source.READ if known else None,
        hashed_at=1.0 if known else None,
        segments=1,
        claims=claims,
        sha256=digest("bytes", word, width=64) if known and not fast else None,
    )


def witness(model: Model, rank: int, *, copy: str | None = None, tables: bool = True, **scan: Any) -> Said:
    """A rank that holds the model; its copy is its own unless `copy` names one."""
    result = scan_of(model, copy=copy if copy is not None else f"copy {rank}", **scan)
    shown = {name: s.segments() for name, s in model.shards.items() if s.readable and s.cut is Segmentation.SAFETENSORS}
    return Said(
        fingerprint=fingerprint(result, rank),
        table=content_table(result) if tables else None,
        segments=shown if tables else {},
    )


def agreement_of(
    models: Sequence[Model],
    *,
    copies: Sequence[str] | None = None,
    stage: Stage = Stage.CONTENT,
    absent: Mapping[int, str] | None = None,
    tables: bool = True,
) -> Agreement:
    """The agreement of ranks 0, 1 ... that hold these models."""
    heard = [
        witness(model, rank, copy=None if copies is None else copies[rank], tables=tables)
        for rank, model in enumerate(models)
    ]
    return judge_all(heard, stage=stage, absent=absent)


def judge_all(
    heard: Sequence[Said], *, stage: Stage = Stage.CONTENT, absent: Mapping[int, str] | None = None
) -> Agreement:
    """Judge with the world's size made of those who are here and those who are not."""
    size = len(heard) + len(absent or {})
    return judge(heard, world_size=size, stage=stage, absent=absent or {}, created=0.0, tool="ckpt-tui 0")


def fingerprints_of(models: Sequence[Model]) -> list[Fingerprint]:
    """The fingerprints alone."""
    return [witness(model, rank).fingerprint for rank, model in enumerate(models)]
