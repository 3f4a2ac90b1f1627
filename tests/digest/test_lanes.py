"""Files that are hashed side by side have the digests of files that are hashed alone, whoever waits for whom."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckpt_tui import native
from ckpt_tui.digest import lanes as lanes_module
from ckpt_tui.digest.lanes import Lanes

paired = pytest.mark.skipif(native.ABREAST == 1, reason="without instructions for it files are hashed one by one")


@pytest.fixture(autouse=True)
def _short_pieces_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "_WORTH_IT", 0)


def together(*work: Callable[[], None]) -> None:
    """Run each in a thread of its own, to its end."""
    failures: list[BaseException] = []

    def run(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


FILES = st.lists(st.lists(st.integers(0, 5000), max_size=6), min_size=1, max_size=8)


@given(FILES, st.integers(1, 3))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_side_by_side_have_their_own_digests(files: list[list[int]], cores: int) -> None:
    lanes = Lanes(cores)
    found: dict[int, bytes] = {}
    pieces = {
        number: [hashlib.shake_128(b"%d %d" % (number, place)).digest(length) for place, length in enumerate(lengths)]
        for number, lengths in enumerate(files)
    }

    def hashing(number: int) -> Callable[[], None]:
        rooms = bytearray(5000), bytearray(5000)  # as files are read: the room of a piece is used again after the next

        def run() -> None:
            with lanes.sha256() as hash_:
                for place, piece in enumerate(pieces[number]):
                    room = rooms[place % 2]
                    room[: len(piece)] = piece
                    hash_.update(memoryview(room)[: len(piece)])
            found[number] = hash_.digest()

        return run

    together(*map(hashing, pieces))
    assert found == {number: hashlib.sha256(b"".join(parts)).digest() for number, parts in pieces.items()}


@paired
def test_a_thread_whose_core_is_taken_lets_another_hash_its_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "_PATIENCE", 60)
    lanes, waits = Lanes(1), threading.Event()
    hashed_by: list[int] = []
    hash_piece = lanes._hash

    def noted(*piece: object) -> None:
        hashed_by.append(threading.get_ident())
        hash_piece(*piece)  # type: ignore[arg-type]

    monkeypatch.setattr(lanes, "_hash", noted)
    digests: list[bytes] = []
    second: list[int] = []

    def one() -> None:
        with lanes.sha256() as hash_:
            waits.wait(60)
            hash_.update(memoryview(b"one"))
            digests.append(hash_.digest())

    def other() -> None:
        second.append(threading.get_ident())
        with lanes.sha256() as hash_:
            waits.set()
            hash_.update(memoryview(b"other"))
            digests.append(hash_.digest())

    together(one, other)
    assert sorted(digests) == sorted(hashlib.sha256(word).digest() for word in (b"one", b"other"))
    assert len(hashed_by) == 1, "whoever came first left its piece, and the other took it along"


class SlowHash:
    """Stands for the compiled one; two pieces at once take until `finish`."""

    taken, finish = threading.Event(), threading.Event()

    def update(self, *_piece: object) -> None: ...

    def update_with(self, *_pieces: object) -> None:
        self.taken.set()
        self.finish.wait(60)

    def digest(self) -> bytes:
        return b""


class FailingHash(SlowHash):
    def update_with(self, *_pieces: object) -> None:
        raise MemoryError


@paired
def test_a_file_that_fails_waits_until_nobody_reads_its_piece_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "Sha256", SlowHash)
    lanes, other_is_there, left, ended = Lanes(1), threading.Event(), threading.Event(), threading.Event()

    def fails() -> None:
        try:
            with lanes.sha256() as hash_:
                other_is_there.wait(60)
                hash_.update(memoryview(b"left"))
                left.set()
                SlowHash.taken.wait(60)
                raise OSError(5, "Input/output error")
        finally:
            ended.set()

    def takes() -> None:
        with lanes.sha256() as hash_:
            other_is_there.set()
            left.wait(60)
            hash_.update(memoryview(b"taken along"))

    def looks() -> None:
        SlowHash.taken.wait(60)
        assert not ended.wait(0.2)
        SlowHash.finish.set()

    with pytest.raises(OSError, match="Input/output"):
        together(fails, takes, looks)
    assert ended.is_set()


@paired
def test_what_fails_over_two_pieces_is_raised_for_both_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "Sha256", FailingHash)
    monkeypatch.setattr(lanes_module, "_PATIENCE", 60)
    lanes, both = Lanes(1), threading.Barrier(2)
    failed: list[BaseException] = []

    def fails() -> None:
        try:
            with lanes.sha256() as hash_:
                both.wait(60)
                hash_.update(memoryview(b"piece"))
                hash_.update(memoryview(b"piece"))
        except MemoryError as error:
            failed.append(error)

    together(fails, fails)
    assert len(failed) == 2


@paired
def test_a_thread_goes_on_alone_where_the_other_does_not_come() -> None:
    lanes, release = Lanes(1), threading.Event()
    digests: list[bytes] = []

    def held_up() -> None:
        with lanes.sha256():
            release.wait(60)  # as a disk that does not answer

    def goes_on() -> None:
        with lanes.sha256() as hash_:
            for _ in range(3):
                hash_.update(memoryview(b"piece"))
            digests.append(hash_.digest())
        release.set()

    together(held_up, goes_on)
    assert digests == [hashlib.sha256(b"piece" * 3).digest()]


def test_a_file_that_fails_half_way_leaves_the_others_theirs() -> None:
    lanes = Lanes(1)
    digests: list[bytes] = []

    def fails() -> None:
        with lanes.sha256() as hash_:
            hash_.update(memoryview(b"x"))
            raise OSError(5, "Input/output error")

    def goes_on() -> None:
        with lanes.sha256() as hash_:
            for _ in range(20):
                hash_.update(memoryview(b"piece"))
            digests.append(hash_.digest())

    with pytest.raises(OSError, match="Input/output"):
        together(fails, goes_on)
    together(goes_on)
    assert digests == [hashlib.sha256(b"piece" * 20).digest()] * 2
