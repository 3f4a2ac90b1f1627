"""Answers on their way to the screen: each is cut into slices once, when it is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stream.codec import split_drill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..stream.messages import DrillRow, Place
    from .post import Post


class Answers:
    """Remembers what was published."""

    def __init__(self) -> None:
        self._told: dict[Place, DrillRow] = {}

    def publish(self, post: Post, rows: Mapping[Place, DrillRow]) -> None:
        """Put the rows that are not as they were."""
        for place, row in rows.items():
            if self._told.get(place) is not row:
                self._told[place] = row
                for part in split_drill(row):
                    post.outbox.put(part)
