"""Made-up streams for the screens: a scan of 33 shards, a session of ranks."""

from __future__ import annotations

import msgspec

from ckpt_tui.facts.agreement import (
    AGREEMENT_SCHEMA,
    Agreement,
    Cause,
    CauseCode,
    Difference,
    DifferenceKind,
    DifferingSegment,
    Group,
    RankReport,
    Stage,
    Standing,
    Verdict,
)
from ckpt_tui.facts.cached import CACHE_SCHEMA, CachedFile, CachedFolder, CacheReport, CacheTotals
from ckpt_tui.facts.cached import Standing as CacheStanding
from ckpt_tui.facts.drill import ByteRun, Drill, Element, FirstElement, SideDifference
from ckpt_tui.facts.files import (
    Claim,
    FileResult,
    MissReason,
    Role,
    Segmentation,
    SegmentKind,
    Severity,
    Source,
    State,
)
from ckpt_tui.facts.scan import SCAN_SCHEMA, CheckpointKind, CheckpointRef, ScanResult, Totals
from ckpt_tui.facts.status import ActiveFile, Cell, Phase, RankStatus
from ckpt_tui.stream.codec import split_result
from ckpt_tui.stream.messages import (
    Envelope,
    FileRow,
    Hello,
    Holding,
    Message,
    Mode,
    Place,
    RankRow,
    ResultPart,
    Survey,
    VerdictRow,
    Watching,
    Word,
)
from ckpt_tui.stream.state import StreamState, apply
from tests.support import clocks

NOW = clocks.NOW
GIB = 1 << 30
SHARDS = 33
SHARD_BYTES = int(5.77 * GIB)


def hello(mode: Mode = Mode.SCAN) -> Hello:
    return Hello(protocol=1, tool="ckpt-tui 0.1.0", mode=mode, pid=4711)


def survey(shards: int = SHARDS, *, world_size: int = 1, sidecars: int = 4, repo: bool = True) -> Survey:
    return Survey(
        checkpoint=CheckpointRef(
            path="/models/GLM-5.3-Flash-EXL3",
            kind=CheckpointKind.HUB_SNAPSHOT if repo else CheckpointKind.FOLDER,
            repo_id="zai-org/GLM-5.3-Flash-EXL3" if repo else None,
            revision="423acf37c1d20dd0cf5c1c2b5a5f4c6b4b9f2d11" if repo else None,
        ),
        host="node-a",
        roles="s" + "w" * shards + "s" * (sidecars - 1),
        bytes_total=shards * SHARD_BYTES + sidecars * 100_000,
        threads=8,
        sha256=True,
        world_size=world_size,
    )


def result(name: str, *, cached: bool = False, claim: bool = True, index: int = 1, **more: object) -> FileResult:
    made = FileResult(
        name=name,
        role=Role.WEIGHTS,
        size=SHARD_BYTES,
        state=State.GOOD,
        digest=f"{index * 7919:032x}",
        segmentation=Segmentation.SAFETENSORS,
        source=Source.CACHE if cached else Source.READ,
        hashed_at=NOW - (3 * 86400 + 100 if cached else 20),
        segments=412,
        claims=(Claim(kind="hub-blob", algorithm="sha256", expected="53aa" * 16, holds=True, origin="hub"),)
        if claim
        else (),
        sha256=f"{(index * 104729 + 12345) * 0xABCDEF987654321 % (1 << 256):064x}"[::-1],
        miss_reason=None if cached else MissReason.NEW,
    )
    return msgspec.structs.replace(made, **more)


def shard(number: int, cell: Cell, *, total: int = SHARDS, done: float = 0.0, rank: int = 0, **more: object) -> FileRow:
    name = f"model-{number:05}-of-{total:05}.safetensors"
    finished = cell in {Cell.CACHED, Cell.READ}
    made = FileRow(
        rank=rank,
        index=number,
        name=name,
        role=Role.WEIGHTS,
        size=SHARD_BYTES,
        cell=cell,
        done=SHARD_BYTES if finished else int(done * SHARD_BYTES),
        rate=0.11 * GIB if cell is Cell.READ else (0.07 + number % 4 * 0.011) * GIB if cell is Cell.READING else 0.0,
        result=result(name, cached=cell is Cell.CACHED, index=number) if finished else None,
    )
    return msgspec.structs.replace(made, **more)


def sidecar(index: int, name: str, cell: Cell = Cell.READ, rank: int = 0) -> FileRow:
    done = result(name, index=index, size=20_000, role=Role.SIDECAR) if cell is Cell.READ else None
    return FileRow(rank=rank, index=index, name=name, role=Role.SIDECAR, size=20_000, cell=cell, result=done)


def status(rank: int = 0, phase: Phase = Phase.CONTENT, host: str | None = None, **more: object) -> RankStatus:
    made = RankStatus(
        rank=rank,
        host=host or f"node-{chr(ord('a') + rank % 26)}",
        phase=phase,
        beat=7,
        pid=4000 + rank,
        bytes_total=SHARDS * SHARD_BYTES,
        files_total=SHARDS,
        path="/models/GLM-5.3-Flash-EXL3",
    )
    return msgspec.structs.replace(made, **more)


def scanning() -> list[Message]:
    """A cold-and-warm scan under way: 12 shards cached, some read, one truncated."""
    rows: list[Message] = [hello(), survey(), Watching(rank=0), sidecar(0, "config.json")]
    rows += [
        sidecar(SHARDS + 1 + place, name)
        for place, name in enumerate(["generation_config.json", "tokenizer.json", "tokenizer_config.json"])
    ]
    for number in range(1, SHARDS + 1):
        if number == 7:
            note = "12,345 bytes short"
            rows.append(shard(number, Cell.BAD, state=State.TRUNCATED, note=note))
        elif number <= 13:
            rows.append(shard(number, Cell.CACHED))
        elif number <= 20:
            rows.append(shard(number, Cell.READ))
        elif number <= 28:
            rows.append(shard(number, Cell.READING, done=(number * 37 % 90 + 5) / 100))
        else:
            rows.append(shard(number, Cell.WAITING))
    cells = "".join(row.cell for row in sorted((r for r in rows if isinstance(r, FileRow)), key=lambda row: row.index))
    cached, done = 12 * SHARD_BYTES, int(22.4 * SHARD_BYTES)
    rows.append(
        RankRow(
            status=status(
                bytes_done=done,
                bytes_cached=cached,
                files_done=20,
                files_cached=12,
                rate=0.66 * GIB,
                cells=cells,
                active=(ActiveFile(index=21, done=4),),
                doing="reading 8 shards",
            ),
            heard=NOW,
        )
    )
    rows.append(VerdictRow(word=Word.DAMAGED, text="1 shard truncated"))
    return rows


def verified() -> list[Message]:
    """A warm start: everything came from the cache."""
    rows: list[Message] = [hello(), survey(), Watching(rank=0), sidecar(0, "config.json")]
    rows += [shard(number, Cell.CACHED) for number in range(1, SHARDS + 1)]
    total = SHARDS * SHARD_BYTES
    rows.append(
        RankRow(
            status=status(
                phase=Phase.DONE, bytes_done=total, bytes_cached=total, files_done=SHARDS, files_cached=SHARDS
            ),
            heard=NOW,
        )
    )
    text = "33/33 cached, 0.0 GiB read, 0.1 s, oldest digest 3 d"
    rows.append(VerdictRow(word=Word.VERIFIED, text=text, code=0))
    return rows


def agreement() -> Agreement:
    """Rank 2 of four differs in one tensor of shard 7."""
    digests = {"A": "aa11" * 16, "B": "bb22" * 16}
    return Agreement(
        schema=AGREEMENT_SCHEMA,
        verdict=Verdict.DIFFER,
        stage=Stage.CONTENT,
        weights_equal=False,
        world_size=4,
        ranks=tuple(
            RankReport(
                rank=rank,
                host=f"node-{'abcd'[rank]}",
                path="/models/GLM-5.3-Flash-EXL3",
                file_system="ext4 /dev/nvme0n1",
                group="B" if rank == 2 else "A",
                files_cached=33,
                files=33,
                oldest_digest=NOW - 3000,
                bytes_sent=400,
            )
            for rank in range(4)
        ),
        groups=(
            Group(
                name="A",
                ranks=(0, 1, 3),
                copies=3,
                identity="11" * 32,
                content=digests["A"],
                standing=Standing.RIGHT,
                evidence=("keeps 33 recorded hashes of the hub",),
            ),
            Group(
                name="B",
                ranks=(2,),
                copies=1,
                identity="11" * 32,
                content=digests["B"],
                standing=Standing.WRONG,
                evidence=("breaks a recorded hash of the hub",),
            ),
        ),
        absent=(),
        errors=(),
        differences=(
            Difference(
                file="model-00007-of-00033.safetensors",
                role=Role.WEIGHTS,
                kind=DifferenceKind.CONTENT,
                severity=Severity.ERROR,
                groups={"A": "sha256 53aa51172d14", "B": "sha256 9b2cc01f6a77"},
                segments=(
                    DifferingSegment(
                        name="model.layers.3.mlp.down_proj.weight",
                        kind=SegmentKind.TENSOR,
                        offset=1_203_765_248,
                        length=100_663_296,
                    ),
                ),
                cause=Cause(
                    code=CauseCode.UNKNOWN,
                    summary="1 of 412 tensors differs",
                    facts=(),
                    mend="hf download zai-org/GLM-5.3-Flash-EXL3 model-00007-of-00033.safetensors --revision 423acf37",
                    candidate=False,
                ),
            ),
        ),
        warnings=(),
        not_compared=(),
        summary="rank 2 (node-c) differs in 1 of 33 shards",
    )


def session(*, decided: bool) -> list[Message]:
    """Four ranks, while they read or with the verdict."""
    total = SHARDS * SHARD_BYTES
    rows: list[Message] = [hello(Mode.RANKS), survey(world_size=4), Watching(rank=0)]
    rows += [shard(number, Cell.READ if decided or number < 20 else Cell.WAITING) for number in range(1, SHARDS + 1)]
    for rank in range(4):
        done = total if decided else int(total * (0.9 - 0.2 * rank))
        files = SHARDS * done // total
        cells = "+" + "=" * (3 + rank) + "+" * (files - 3 - rank) + (">>" + "." * SHARDS if files < SHARDS else "+" * 8)
        one = status(
            rank,
            Phase.DONE if decided else Phase.CONTENT,
            bytes_done=done,
            files_done=files,
            files_cached=3 + rank,
            rate=0 if decided else 0.4 * GIB,
            cells=cells[: SHARDS + 4],
            bytes_cached=3 * SHARD_BYTES,
            doing="" if decided else f"reading model-{files + 1:05}-of-00033.safetensors",
        )
        rows.append(RankRow(status=one, heard=NOW - rank * 0.3))
    if decided:
        found = agreement()
        text = "rank 2 (node-c) differs in 1 of 33 shards: its bytes break the hub's recorded hash"
        lines = ("model-00007-of-00033.safetensors: model.layers.3.mlp.down_proj.weight",)
        rows += [*split_result(found), VerdictRow(word=Word.DIFFER, text=text, code=1, lines=lines)]
    return rows


def scan_result(files: tuple[FileResult, ...] = (), **more: object) -> ScanResult:
    """A scan's result over these files."""
    made = ScanResult(
        schema=SCAN_SCHEMA,
        host="node-a",
        tool="ckpt-tui 0.1.0",
        digest_layout=1,
        created=NOW,
        checkpoint=survey().checkpoint,
        identity="11" * 32,
        content="22" * 32,
        logical_content="33" * 32,
        sidecars="44" * 32,
        files=files,
        findings=(),
        not_compared=(),
        totals=Totals(
            files=len(files),
            bytes=sum(file.size for file in files),
            files_cached=sum(file.source is Source.CACHE for file in files),
            bytes_read=0,
            seconds=0.1,
            threads=8,
        ),
    )
    return msgspec.structs.replace(made, **more)


def known(messages: list[Message]) -> StreamState:
    """The state after these messages."""
    state = StreamState()
    apply(state, [Envelope(seq, message) for seq, message in enumerate(messages, 1)])
    return state


def cache_report(*, more: int = 0) -> CacheReport:
    """What the cache holds: this checkpoint in the hub cache, and two folders of other ages."""
    files, folders = [], []
    shelves = (
        ("/data/old/Qwen-72B-Instruct", 8, 41, CacheStanding.GONE),
        ("/models/Llama-8B", 4, 12, CacheStanding.CHANGED),
        ("/home/op/.cache/huggingface/hub/models--zai-org--GLM-5.3-Flash-EXL3/blobs", 12, 3, CacheStanding.CURRENT),
        *((f"/models/many-{number:05}", 1, 1, CacheStanding.CURRENT) for number in range(more)),
    )
    for path, count, days, standing in shelves:
        hub = path.endswith("/blobs")
        for place in range(1, count + 1):
            made = result(f"model-{place + 1:05}-of-00033.safetensors", cached=True, index=place + 1)
            name = made.sha256 if hub else f"model-{place:05}-of-{count:05}.safetensors"
            files.append(
                CachedFile(
                    path=f"{path}/{name}",
                    size=SHARD_BYTES,
                    hashed_at=NOW - days * 86400 - 100,
                    digest=made.digest or "",
                    standing=standing,
                    record_bytes=94_000,
                    sha256=made.sha256 if hub else f"{place:064x}",
                    detail="mtime, size" if standing is CacheStanding.CHANGED else None,
                )
            )
        folders.append(
            CachedFolder(
                path=path,
                files=count,
                bytes=count * SHARD_BYTES,
                oldest=NOW - days * 86400 - 100,
                hits=3 * count,
                bytes_saved=3 * count * SHARD_BYTES,
                last_used=NOW - 100,
            )
        )
    totals = CacheTotals(
        records=len(files),
        bytes=len(files) * SHARD_BYTES,
        record_bytes=94_000 * len(files),
        hits=1204,
        bytes_saved=1204 * SHARD_BYTES,
        misses=96,
        bytes_read=96 * SHARD_BYTES,
        oldest=NOW - 41 * 86400,
        last_used=NOW - 100,
    )
    return CacheReport(
        schema=CACHE_SCHEMA,
        command="list",
        tool="ckpt-tui 0.1.0",
        created=NOW,
        folder="/home/op/.cache/ckpt-tui/node-a-0123456789ab",
        totals=totals,
        folders=tuple(folders),
        files=tuple(files),
    )


def scanned() -> list[Message]:
    """A scan that is done, with its result: shards that kept their recorded hashes."""
    rows = verified()
    files = tuple(row.result for row in rows if isinstance(row, FileRow) and row.result is not None)
    return [*rows[:-1], *split_result(scan_result(files)), rows[-1]]


TENSOR = "model.layers.3.mlp.down_proj.weight"
SHARD = "model-00007-of-00033.safetensors"


def place(**more: object) -> Place:
    """The tensor that differs, or a place in it."""
    made = Place(file=SHARD, kind=SegmentKind.TENSOR, name=TENSOR, offset=1_203_765_248)
    return msgspec.structs.replace(made, **more)


def element(hexed: str, value: str, around: str) -> Element:
    return Element(hex=hexed, value=value, around=around)


def drill(*, at: int = 29_590_682, runs: tuple[int, ...] = (29_590_683,), not_read: int = 0) -> Drill:
    """One bit of the element at `at`, its sign; the runs of bytes at these places."""
    start = 1_203_765_248
    found = FirstElement(
        offset=start + at + 1,
        element=at // 2,
        index=(1204, 77),
        bits=(15,),
        around_offset=start + at - 4,
        reference=element("3c4a", "0.0123", "113c02bd4a3c103d"),
        other=element("bc4a", "-0.0123", "113c02bd4abc103d"),
    )
    side = SideDifference(
        side="B",
        dtype="BF16",
        shape=(4096, 12288),
        bytes=len(runs),
        bits=len(runs),
        elements=len(runs),
        bit_positions=(15,),
        runs=tuple(ByteRun(offset=start + run, length=1, bytes=1) for run in runs),
        first=found,
        compared=1 << 20,
        not_read=not_read,
    )
    return Drill(reference="A", sides=(side,), read_again={"A": True, "B": True}, leaves=96, leaves_differing=1)


def drilled(*, found: Drill | None = None, **more: object) -> Agreement:
    """The same agreement, and the tensor was looked into."""
    made = agreement()
    one = made.differences[0]
    segment = msgspec.structs.replace(one.segments[0], drill=found or drill())
    cause = msgspec.structs.replace(
        one.cause, code=CauseCode.BIT_FLIP, summary="1 bit in 1 byte", facts=("1 of 412 tensors differs",)
    )
    one = msgspec.structs.replace(one, segments=(segment,), cause=cause, **more)
    return msgspec.structs.replace(made, differences=(one,))


def told(found: Agreement, *more: Message, held: bool = True) -> list[Message]:
    """A session with this verdict, whose ranks are held ready."""
    rows = [row for row in session(decided=True) if not isinstance(row, ResultPart)]
    return [*rows, *split_result(found), Holding(ready=held, reason="" if held else "nobody stayed"), *more]
