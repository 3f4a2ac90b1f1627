"""The file rows of the watched rank; only those that changed are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stream import rows
from ..stream.messages import FileRow, Watching

if TYPE_CHECKING:
    from ..checkpoint import CheckpointFile
    from ..digest import Scanner
    from ..facts.status import RankStatus
    from .post import Post


class FileRows:
    """The file rows of one rank at a time."""

    def __init__(self, scanner: Scanner, own: int) -> None:
        self._scanner = scanner
        self._own = own
        self._watched: int | None = None
        self._seen: dict[int, object] = {}
        self.rows: dict[int, FileRow] = {}

    @property
    def files(self) -> tuple[CheckpointFile, ...]:
        """The checkpoint's files; empty until the survey has found them."""
        return self._scanner.survey().checkpoint.files if self._scanner.progress.files else ()

    def publish(self, post: Post, watched: RankStatus, now: float) -> None:
        """Put the rows that are not as they were."""
        rank = watched.rank
        if rank != self._watched:
            self._watched, self._seen, self.rows = rank, {}, {}
            post.outbox.forget("file")
            post.outbox.put(Watching(rank=rank))
        progress = self._scanner.progress.files
        active = {one.index: one.done for one in watched.active}
        for index, file in enumerate(self.files):
            mine = progress[index] if rank == self._own else None
            look: object = (
                (mine.cell, mine.done, mine.finished)
                if mine is not None
                else (watched.cells[index : index + 1], active.get(index))
            )
            if self._seen.get(index) == look:
                continue
            self._seen[index] = look
            self.rows[index] = (
                rows.own_file(rank, index, file, mine, now)
                if mine is not None
                else rows.other_file(watched, index, file)
            )
            post.outbox.put(self.rows[index])
