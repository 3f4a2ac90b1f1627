"""Driving the app without a terminal, and reading what it shows."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ckpt_tui.tui.app import CkptApp
from ckpt_tui.tui.sources import MemorySource
from tests.support.clocks import StillClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from textual.pilot import Pilot

    from ckpt_tui.stream.messages import Message

PATH = "/models/GLM-5.3-Flash-EXL3"


class Driven:
    """An app under test."""

    def __init__(self, app: CkptApp, source: MemorySource, clock: StillClock, pilot: Pilot[int]) -> None:
        self.app, self.source, self.clock, self.pilot = app, source, clock, pilot

    @property
    def lines(self) -> list[str]:
        """What is on the screen."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def until(self, predicate: Callable[[], object], seconds: float = 10) -> None:
        """Let the app run until this is true."""
        async with asyncio.timeout(seconds):
            while not predicate():
                await self.pilot.pause()

    async def shows(self, *texts: str) -> None:
        """Let the app run until all these are on the screen."""
        try:
            await self.until(lambda: all(text in self.text for text in texts))
        except TimeoutError:
            missing = [text for text in texts if text not in self.text]
            raise AssertionError(f"not shown: {missing}\n{self.text}") from None

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    def line_with(self, text: str) -> str:
        return next(line for line in self.lines if text in line)


@asynccontextmanager
async def driven(
    messages: Iterable[Message] = (), size: tuple[int, int] = (120, 32), **options: Any
) -> AsyncIterator[Driven]:
    source, clock = MemorySource(messages), StillClock()
    app = CkptApp(source, path=PATH, clock=clock, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        yield Driven(app, source, clock, pilot)


def run(coroutine: Any) -> None:
    """Run an async test to its end, with a deadline."""
    asyncio.run(asyncio.wait_for(coroutine, 60))
