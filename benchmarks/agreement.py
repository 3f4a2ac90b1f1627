"""What judging a large session costs, in memory alone: `python -m benchmarks.agreement`.

4,096 ranks × 200 files × 120,000 tensors, of which a few differ; then the same where every file has a tensor that
differs, so that the segments of all 120,000 are laid side by side. What is measured is what every rank does with the
messages of all: finding groups, choosing the files to look into, and judging. Leaves with 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import time
from typing import NamedTuple

from ckpt_tui.agreement import Testimony, files_to_descend, groups_of, judge
from ckpt_tui.facts.agreement import Agreement, Fingerprint, Stage, TableRow, Verdict
from ckpt_tui.facts.files import Role, Segment, Segmentation, SegmentKind, State
from ckpt_tui.facts.scan import DIGEST_LAYOUT

RANKS, FILES, TENSORS = 4096, 200, 120_000
#: Aims: seconds and bytes.
SECONDS, MEMORY = 2.0, 1 << 30
#: Bytes of a tensor, and of a header.
LENGTH, HEADER = 1 << 20, 1 << 16

Changes = dict[int, frozenset[tuple[int, int]]]
"""By rank, the tensors (file, place) that it holds otherwise than the others."""


class Outcome(NamedTuple):
    """What one session came to, and what it cost."""

    agreement: Agreement
    groups: tuple[tuple[int, ...], ...]
    seconds: float


def main() -> None:
    """Measure, print, and hold against the aims."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("--ranks", type=int, default=RANKS)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--tensors", type=int, default=TENSORS)
    options = parser.parse_args()
    size: tuple[int, int, int] = options.ranks, options.files, options.tensors
    print("{:,} ranks, {:,} files, {:,} tensors".format(*size))
    missed = False
    for words, changes in (
        ("all agree", {}),
        ("three ranks differ in a few tensors", a_few(*size)),
        ("one rank differs in every file", everywhere(*size)),
    ):
        outcome = session(*size, changes)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        missed |= outcome.seconds > SECONDS or peak > MEMORY
        named = sum(len(one.segments) + one.segments_left_out for one in outcome.agreement.differences)
        print(
            f"  {words}: {outcome.seconds:.2f} s, peak {peak / (1 << 20):.0f} MiB, {outcome.agreement.verdict.value}, "
            f"{len(outcome.groups)} groups, {len(outcome.agreement.differences)} files and {named} segments named"
        )
    print(f"aims: {SECONDS:.0f} s and {MEMORY >> 20} MiB each: {'missed' if missed else 'met'}")
    sys.exit(missed)


def a_few(ranks: int, files: int, tensors: int) -> Changes:
    """Two ranks that share two odd tensors, and one with an odd tensor of its own."""
    pair = frozenset({(0, 0), (files - 1, tensors // files - 1)})
    return {1: pair, ranks // 2: pair, ranks - 1: frozenset({(files // 2, 0)})}


def everywhere(ranks: int, files: int, _tensors: int) -> Changes:
    """One rank with an odd tensor in every file."""
    return {ranks - 1: frozenset((file, 0) for file in range(files))}


def session(ranks: int, files: int, tensors: int, changes: Changes) -> Outcome:
    """One session: what the ranks would say is made beforehand, and is not in the seconds."""
    each = tensors // files
    fingerprints = [_fingerprint(rank, files, changes.get(rank, frozenset())) for rank in range(ranks)]
    own_tables: dict[int, tuple[TableRow, ...]] = {}
    segments: dict[int, dict[str, tuple[Segment, ...]]] = {}
    for rank in [next(rank for rank in range(ranks) if rank not in changes), *changes]:
        odd = changes.get(rank, frozenset())
        own_tables[rank] = tuple(_row(file, each, odd) for file in range(files))
        segments[rank] = {_name(file): _segments(file, each, odd) for file in range(files) if _asked(file, changes)}
    begun = time.perf_counter()
    groups = groups_of(fingerprints, Stage.CONTENT)
    tables = {group[0]: own_tables[group[0]] for group in groups} if len(groups) > 1 else {}
    names = frozenset(files_to_descend(tables))
    heard = [
        Testimony(
            fingerprint=one,
            table=tables.get(one.rank),
            segments={name: segments[one.rank][name] for name in names} if one.rank in tables else {},
            bytes_sent=1000,
        )
        for one in fingerprints
    ]
    agreement = judge(heard, world_size=ranks, stage=Stage.CONTENT, created=0.0, tool="benchmark")
    outcome = Outcome(agreement, groups, time.perf_counter() - begun)
    assert agreement.verdict is (Verdict.DIFFER if changes else Verdict.AGREE), agreement.summary
    return outcome


def _asked(file: int, changes: Changes) -> bool:
    return any(file == odd for tensors in changes.values() for odd, _ in tensors)


def _name(file: int) -> str:
    return f"model-{file + 1:05}.safetensors"


def _digest(*parts: object, width: int = 32) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:width]


def _fingerprint(rank: int, files: int, odd: frozenset[tuple[int, int]]) -> Fingerprint:
    held = tuple(sorted(odd))
    return Fingerprint(
        rank=rank,
        host=f"node-{rank // 8:04}",
        path="/models/huge",
        file_system="ext4 /dev/nvme0n1p1",
        layout=DIGEST_LAYOUT,
        tool="benchmark",
        identity=_digest("identity"),
        content=_digest("content", held),
        content_sha256=_digest("sha256", held, width=64),
        logical_content=_digest("logical", held),
        sidecars=_digest("sidecars"),
        segmentation=Segmentation.SAFETENSORS.value,
        copy_id=_digest("copy", rank // 8, held),
        files=files,
        files_cached=0,
        oldest_digest=0.0,
    )


def _row(file: int, each: int, odd: frozenset[tuple[int, int]]) -> TableRow:
    held = sorted(place for where, place in odd if where == file)
    return TableRow(
        name=_name(file),
        role=Role.WEIGHTS,
        size=HEADER + each * LENGTH,
        state=State.GOOD,
        digest=_digest("file", file, held),
        segmentation=Segmentation.SAFETENSORS.value,
        sha256=_digest("bytes", file, held, width=64),
        segments=each + 1,
    )


def _segments(file: int, each: int, odd: frozenset[tuple[int, int]]) -> tuple[Segment, ...]:
    header = Segment(kind=SegmentKind.HEADER, name="", offset=0, length=HEADER, digest=_digest("header", file))
    return header, *(
        Segment(
            kind=SegmentKind.TENSOR,
            name=f"model.layers.{file}.mlp.experts.{place}.down_proj.weight",
            offset=HEADER + place * LENGTH,
            length=LENGTH,
            digest=_digest("tensor", file, place, (file, place) in odd),
            dtype="BF16",
            shape=(512, 1024),
        )
        for place in range(each)
    )


if __name__ == "__main__":
    main()
