"""One pass over a file: the same digests by however many threads, from whatever offsets, and nothing left behind."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckpt_tui.digest import passes
from ckpt_tui.digest.behind import CHUNK
from ckpt_tui.digest.buffers import new_buffer, place
from ckpt_tui.digest.control import Control
from ckpt_tui.digest.crew import Crew
from ckpt_tui.digest.cut import Span, Spans
from ckpt_tui.digest.layout import LEAF
from ckpt_tui.digest.pagecache import resident as resident_pages
from ckpt_tui.digest.passes import Moved
from ckpt_tui.digest.pieces import LONGEST
from ckpt_tui.digest.progress import FileProgress
from ckpt_tui.digest.reader import Digests, read_digests
from ckpt_tui.digest.scheduler import Job, run_longest_first
from ckpt_tui.digest.validity import Wants
from ckpt_tui.facts.clock import SystemClock
from ckpt_tui.facts.files import SegmentKind
from ckpt_tui.facts.outcome import Interrupted
from ckpt_tui.facts.scan import ScanResult
from tests.support.checkpoints import noise, write_checkpoint
from tests.support.memory import ROOT

LENGTHS = st.lists(
    st.one_of(st.integers(0, 9), st.integers(LEAF - 2, LEAF + 2), st.integers(0, 3 * LEAF)), min_size=1, max_size=6
)
WANTS = st.sampled_from([Wants(sha256=False), Wants(), Wants(sha256=False, git_sha1=True), Wants(git_sha1=True)])


def spans_of(lengths: list[int]) -> Spans:
    spans, offset = [], 0
    for number, length in enumerate(lengths):
        spans.append(Span(SegmentKind.TENSOR, f"t{number}", offset, length))
        offset += length
    return Spans.of(spans)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_by(threads: int, path: Path, spans: Spans, wants: Wants, advance: Callable[[int], None]) -> Digests:
    """The digests of a file, read by one thread that has it and others that can only help."""
    control = Control(SystemClock())
    size = path.stat().st_size
    found: list[Digests] = []

    def run(buffer: memoryview) -> bool:
        with opened(path) as descriptor:
            found.append(
                read_digests(
                    descriptor, size, spans, wants=wants, buffer=buffer, advance=advance, crew=control.crew
                )
            )  # fmt: skip
        return False

    run_longest_first([Job(1 << 40, run)], threads, control)
    return found[0]


@settings(max_examples=30, deadline=None)
@given(LENGTHS, WANTS, st.integers(2, 5))
def test_many_threads_on_one_file_find_what_one_finds(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], wants: Wants, threads: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "one"
    raw = noise("reader", sum(lengths))
    path.write_bytes(raw)
    spans = spans_of(lengths)
    counts: list[int] = []
    with opened(path) as descriptor:
        alone = read_digests(
            descriptor, len(raw), spans, wants=wants, buffer=new_buffer(), advance=lambda _count: None
        )  # fmt: skip
    together = read_by(threads, path, spans, wants, counts.append)
    assert together == alone
    assert sum(counts) == len(raw)
    assert together.sha256 == (hashlib.sha256(raw).digest() if wants.sha256 else None)
    assert together.git_sha1 == (hashlib.sha1(b"blob %d\0" % len(raw) + raw).digest() if wants.git_sha1 else None)


@pytest.mark.parametrize("wants", [Wants(), Wants(sha256=False)])
def test_idle_threads_do_help(wants: Wants, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one"
    path.write_bytes(noise("helped", 64 * LONGEST))
    fetch = passes.Source.fetch
    readers: set[str] = set()
    met = threading.Event()

    def noted(source: passes.Source, number: int, buffer: memoryview) -> memoryview:
        readers.add(threading.current_thread().name)
        if len(readers) > 1:
            met.set()
        met.wait(30)  # the first waits in here for the second
        return fetch(source, number, buffer)

    monkeypatch.setattr(passes.Source, "fetch", noted)
    read_by(2, path, spans_of([64 * LONGEST]), wants, lambda _count: None)
    assert len(readers) == 2


@pytest.mark.parametrize("wants", [Wants(), Wants(sha256=False)])
@pytest.mark.parametrize("error", [OSError(5, "EIO"), Interrupted("stop")])
def test_what_fails_in_any_thread_ends_the_reading_with_it(
    wants: Wants, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one"
    path.write_bytes(noise("failing", 40 * LONGEST))
    fetch = passes.Source.fetch

    def failing(source: passes.Source, number: int, buffer: memoryview) -> memoryview:
        if number == 23:
            raise error
        return fetch(source, number, buffer)

    monkeypatch.setattr(passes.Source, "fetch", failing)
    with pytest.raises(type(error)):
        read_by(3, path, spans_of([40 * LONGEST]), wants, lambda _count: None)


@pytest.mark.parametrize("wants", [Wants(), Wants(sha256=False)])
def test_a_file_that_ends_early_has_moved(wants: Wants, tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(noise("short", 5 * LEAF))
    with pytest.raises(Moved, match="size"):
        read_by(3, path, spans_of([5 * LEAF, 1]), wants, lambda _count: None)


def test_a_crew_waits_for_its_helpers_before_the_file_is_closed() -> None:
    crew = Crew()
    helping, finish = threading.Event(), threading.Event()
    ends: list[str] = []

    def step(_buffer: memoryview) -> bool:
        helping.set()
        finish.wait(30)
        ends.append("helper")
        return False

    def help_() -> None:
        with crew.changed:
            while (task := crew.join()) is None:
                crew.changed.wait(1)
        crew.help(task, new_buffer())

    helper = threading.Thread(target=help_, daemon=True)
    helper.start()
    with crew.helped(step, 1):
        assert helping.wait(30)
        threading.Timer(0, finish.set).start()
    ends.append("owner")
    helper.join(30)
    assert ends == ["helper", "owner"]
    assert crew.join() is None


def test_a_piece_lies_as_far_into_a_page_as_in_its_file_wherever_it_begins() -> None:
    buffer = new_buffer()
    for offset in (0, 1, 4095, 4096, (1 << 40) + 17):
        assert len(place(buffer, offset, LONGEST)) == LONGEST


def resident(path: Path) -> int:
    """Bytes of a file that lie in the page cache."""
    done = subprocess.run(["fincore", "-bnro", "RES", path], capture_output=True, check=True, timeout=30)
    return int(done.stdout)


@pytest.mark.parametrize("drop", [True, False])
def test_pages_are_released_when_asked_and_else_left_for_the_loader(
    drop: bool, tmp_path: Path, scanned: Callable[..., ScanResult]
) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=1, tensors=2, shape=(1024, 1024))
    weights = next(folder.glob("*.safetensors"))
    with weights.open("rb") as file:
        os.fsync(file.fileno())
    try:
        before = resident(weights)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no fincore, or it cannot say")
    if not before:
        pytest.skip("this file system keeps nothing in the page cache")
    scanned(folder, drop_page_cache=drop)
    assert (resident(weights) < before // 2) is drop


@pytest.mark.parametrize("fast", [True, False])
def test_a_file_whose_pages_are_released_is_never_in_memory_as_a_whole(
    fast: bool, tmp_path: Path, scanned: Callable[..., ScanResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_checkpoint(tmp_path / "model", shards=1, tensors=4, shape=(2048, 2048))
    weights = next(folder.glob("*.safetensors"))
    with opened(weights) as descriptor:
        os.fsync(descriptor)
        pages = resident_pages(descriptor, weights.stat().st_size)
        if not pages:
            pytest.skip("this file system keeps nothing in the page cache, or does not say")
        left: list[int] = []
        advance = FileProgress.advance

        def noted(progress: FileProgress, count: int) -> None:
            advance(progress, count)
            if progress.name == weights.name and progress.done >= progress.size * (1 + len(left)) // 4:
                left.append(resident_pages(descriptor, progress.size) or 0)

        monkeypatch.setattr(FileProgress, "advance", noted)
        scanned(folder, drop_page_cache=True, sha256=not fast, threads=2)
    at_one_go = 2 * CHUNK // 4096
    assert [held < pages * (4 - quarter) // 4 + at_one_go for quarter, held in enumerate(left, 1)] == [True] * 4


PEAK = """
import sys

from tests.support.memory import peak_mib

from ckpt_tui.digest import scan
from ckpt_tui.facts.settings import ScanSettings
result = scan(sys.argv[1], ScanSettings(threads=8, sha256=sys.argv[2] == "full", cache_dir=sys.argv[3]))
assert result.content
print(peak_mib())
"""


@pytest.mark.parametrize("mode", ["full", "fast"])
@pytest.mark.parametrize(("shards", "length"), [(1, 512 << 10), (12, 64 << 10)])
def test_peak_memory_stays_flat_with_eight_threads(mode: str, shards: int, length: int, tmp_path: Path) -> None:
    """Far below what the files hold: a thousand tensors in each."""
    folder = tmp_path / "model"
    write_sparse(folder, shards, tensors=1000, length=length)
    command = [sys.executable, "-c", PEAK, str(folder), mode, str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, cwd=ROOT)
    assert float(done.stdout) < 150


def write_sparse(folder: Path, shards: int, *, tensors: int, length: int) -> None:
    folder.mkdir()
    for shard in range(1, shards + 1):
        header = json.dumps(
            {
                f"model.layers.{shard}.mlp.experts.{number}.down_proj.weight": {
                    "dtype": "U8", "shape": [length], "data_offsets": [number * length, (number + 1) * length],
                }
                for number in range(tensors)
            }
        ).encode()  # fmt: skip
        with (folder / f"model-{shard:05}-of-{shards:05}.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + tensors * length)
