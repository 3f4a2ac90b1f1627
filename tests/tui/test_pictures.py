"""Each view as a picture that is kept: whoever changes what is drawn sees it, and says so by keeping the new one.

After a change that is meant, draw them anew and look at each: `python -m tests.tui.test_pictures`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ckpt_tui.stream.codec import split_report
from tests.tui import streams
from tests.tui.screen import driven

if TYPE_CHECKING:
    from collections.abc import Callable

    from ckpt_tui.stream.messages import Message

PICTURES = Path(__file__).parent / "pictures"
SIZES = ((80, 24), (140, 45))


class Scene(NamedTuple):
    """What is drawn: the messages, the view's key, and a text that is there when it is."""

    messages: Callable[[], list[Message]]
    key: str
    shown: str


SCENES = {
    "files-reading": Scene(streams.scanning, "1", "truncated: 12,345 bytes short"),
    "files-verified": Scene(streams.verified, "1", "VERIFIED"),
    "cache": Scene(lambda: [*streams.scanning(), *split_report(streams.cache_report(), 1)], "4", "Qwen"),
    "report": Scene(streams.scanned, "5", "Files: 34"),
    "ranks-reading": Scene(lambda: streams.session(decided=False), "2", "node-d"),
    "ranks-differ": Scene(lambda: streams.session(decided=True), "2", "1 file differs"),
    "mismatch": Scene(lambda: streams.told(streams.drilled()), "3", "bit 15, the sign"),
}
NAMES = [f"{scene}-{width}x{height}" for scene in SCENES for width, height in SIZES]


def path_of(name: str) -> Path:
    return PICTURES / f"{name}.svg"


async def draw(name: str) -> str:
    """The picture as SVG."""
    scene, _, size = name.rpartition("-")
    width, height = map(int, size.split("x"))
    async with driven(SCENES[scene].messages(), size=(width, height)) as screen:
        await screen.press(SCENES[scene].key)
        await screen.shows(SCENES[scene].shown)
        await screen.pilot.pause()
        return screen.app.export_screenshot(title=name)


@pytest.mark.parametrize("name", NAMES)
def test_a_view_looks_as_it_did(name: str, tmp_path: Path) -> None:
    drawn = asyncio.run(asyncio.wait_for(draw(name), 60))
    kept = path_of(name).read_text(encoding="utf-8")
    if drawn != kept:
        new = tmp_path / path_of(name).name
        new.write_text(drawn, encoding="utf-8")
        pytest.fail(f"{name} is drawn otherwise, see {new}; if it is meant: python -m tests.tui.test_pictures")


def test_no_picture_is_kept_that_nobody_draws() -> None:
    assert {path.stem for path in PICTURES.glob("*.svg")} == set(NAMES)


def main() -> None:
    """Draw all of them anew."""
    PICTURES.mkdir(exist_ok=True)
    for path in PICTURES.glob("*.svg"):
        path.unlink()
    for name in NAMES:
        path_of(name).write_text(asyncio.run(draw(name)), encoding="utf-8")
        print(path_of(name))


if __name__ == "__main__":
    sys.exit(main())
