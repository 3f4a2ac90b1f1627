"""The outcome over several ranks or copies on its way to the screen: what is wrong so far, then how it came out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..report import verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..facts.agreement import Agreement
    from ..facts.status import RankStatus
    from .post import Post


class Outcome:
    """Remembers whether the agreement was published."""

    def __init__(self) -> None:
        self._told = False

    def publish(
        self, post: Post, agreement: Agreement | None, statuses: Iterable[RankStatus], now: float, *, strict: bool
    ) -> None:
        """Put the agreement when it is new; without one what stands in the way of it. `strict` is the verdict's."""
        if agreement is None:
            trouble = verdicts.ranks_trouble(statuses)
            if trouble is not None:
                post.outbox.put(trouble)
        elif not self._told:
            self._told = True
            post.result(agreement, verdicts.agreement_verdict(agreement, now, strict=strict))
