"""Screenshots of real runs into screenshots/: real checkpoints, real workers, real ranks, a headless terminal.

Each view is written as SVG, and as PNG where a browser is installed that can draw it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ckpt_tui.demo import stage as staging  # noqa: E402 (after the path is set)
from ckpt_tui.digest import scan  # noqa: E402
from ckpt_tui.facts.settings import ScanSettings  # noqa: E402
from ckpt_tui.facts.status import Cell  # noqa: E402
from ckpt_tui.tui.app import CkptApp  # noqa: E402
from ckpt_tui.tui.sources import ChildSource  # noqa: E402
from tests.support.checkpoints import safetensors_bytes, tensor  # noqa: E402
from tests.support.hub import download, hub  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ckpt_tui.tui.desk import Desk

OUT = ROOT / "screenshots"
SIZE = (120, 32)
REPO = "example-org/Example-7B"
SHARDS, SHARD_SHAPE = 24, (1024, 1024)
SECONDS = 60
WORKER = [sys.executable, "-P", "-m", "ckpt_tui", "_worker", "--stay"]


@asynccontextmanager
async def screen(argv: list[str], title: str, **options: object) -> AsyncIterator[Screen]:
    """The app on a real worker."""
    source = ChildSource([*WORKER, *argv])
    try:
        app = CkptApp(source, path=title, **options)  # type: ignore[arg-type]
        async with app.run_test(size=SIZE) as pilot:
            yield Screen(app, pilot.pause)
    finally:
        source.close()


class Screen:
    """An app, and waiting for what it shows."""

    def __init__(self, app: CkptApp, pause: Callable[[], object]) -> None:
        self._app, self._pause = app, pause

    async def until(self, predicate: Callable[[Desk], object]) -> None:
        """Let it run until this is true, and has been drawn."""
        end = time.monotonic() + SECONDS
        while not predicate(self._app.desk):
            if time.monotonic() > end:
                raise RuntimeError(f"not in {SECONDS} s: {self._app.desk.state.verdict}")
            await self._pause()  # type: ignore[misc]
        for _ in range(3):
            await self._pause()  # type: ignore[misc]

    async def press(self, key: str) -> None:
        """A key, and what it brings."""
        self._app.simulate_key(key)
        for _ in range(5):
            await self._pause()  # type: ignore[misc]

    def top(self) -> Cell | None:
        """What the first row's file does: files are sorted once a second."""
        view = self._app.view
        key = view.table.cursor_key
        file = self._app.desk.files.get(key) if isinstance(key, int) else None
        return file.cell if file else None

    def save(self, name: str) -> None:
        """Write what it shows."""
        path = OUT / f"{name}.svg"
        path.write_text(portable(self._app.export_screenshot(title="ckpt-tui")), encoding="utf-8")
        rasterize(path)
        print(path.relative_to(ROOT))


def portable(svg: str) -> str:
    """The SVG without fonts from elsewhere, on a grid that any monospaced font fits, its bars without seams."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    fonts = "'JetBrains Mono', 'Fira Code', 'DejaVu Sans Mono', Menlo, Consolas, monospace"
    svg = svg.replace("Fira Code, monospace", fonts).replace("font-family: arial", "font-family: sans-serif")
    blocks = r'<text (class="\S+") x="(\S+)" y="(\S+)" textLength="(\S+)" clip-path="\S+">▄+</text>'
    svg = re.sub(blocks, _block, svg)
    return svg.replace("textLength=", 'lengthAdjust="spacingAndGlyphs" textLength=')


def _block(match: re.Match[str]) -> str:
    """Lower half blocks as one rectangle: glyphs side by side show hairlines."""
    style, x, y, width = match.groups()
    return f'<rect {style} x="{x}" y="{float(y) - 6.6:.1f}" width="{width}" height="12.2"/>'


def rasterize(svg: Path) -> None:
    """A PNG beside the SVG, half as large again."""
    png = svg.with_suffix(".png")
    text = svg.read_text(encoding="utf-8")
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    browser = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if browser is not None and found is not None:
        width, height = (round(float(side)) for side in found.groups())
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            page.write_text(f'<meta charset="utf-8"><body style="margin:0">{text}', encoding="utf-8")
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            flags += ["--force-device-scale-factor=1.5", "--default-background-color=00000000"]
            shot = [browser, *flags, f"--window-size={width},{height}", f"--screenshot={png}", page.as_uri()]
            subprocess.run(shot, check=True, capture_output=True, timeout=60)


def shard_name(number: int) -> str:
    """The file name of a shard."""
    return f"model-{number:05}-of-{SHARDS:05}.safetensors"


def example() -> dict[str, bytes]:
    """The files of a repo: 24 shards, and sidecars."""
    files = {"config.json": b'{"model_type": "example"}', "tokenizer.json": b'{"version": "1.0"}',
             "generation_config.json": b"{}", "tokenizer_config.json": b"{}"}  # fmt: skip
    weight_map = {}
    for number in range(1, SHARDS + 1):
        shard = shard_name(number)
        names = [f"model.layers.{number - 1}.{part}.weight" for part in ("self_attn.q_proj", "mlp.down_proj")]
        files[shard] = safetensors_bytes({name: tensor(name, SHARD_SHAPE) for name in names}, {"format": "pt"})
        weight_map |= dict.fromkeys(names, shard)
    index = {"metadata": {}, "weight_map": weight_map}
    files["model.safetensors.index.json"] = msgspec.json.encode(index)
    return files


def cut_short(path: Path) -> None:
    """Damage a file as an interrupted download does."""
    os.truncate(path, path.stat().st_size - 12_345)


async def files_views(folder: Path) -> None:
    """A hub snapshot: partly cached and under way, then warm, then with a shard cut short."""
    with hub(REPO, example()) as address:
        snapshot = Path(download(address, folder / "hf", repo_id=REPO))
    cache = str(folder / "cache")
    for number in range(1, 10):
        scan(snapshot / shard_name(number), ScanSettings(cache_dir=cache))

    def scanning(rate: float) -> list[str]:
        settings = ScanSettings(cache_dir=cache, threads=4, max_rate=rate, hub_cache=str(folder / "hf" / "hub"))
        return ["scan", f"--settings={msgspec.json.encode(settings).decode()}", "--", REPO]

    for name, light in (("files-reading", False), ("files-reading-light", True)):
        # A copy of the cache for each, so that both see the same start.
        before = shutil.copytree(cache, folder / f"cache-{name}")
        argv = [word.replace(cache, str(before)) for word in scanning(12e6)]
        async with screen(argv, REPO, light=light) as shown:
            await shown.until(lambda desk: desk.watched and desk.watched.bytes_done > 0.72 * desk.watched.bytes_total)
            await shown.until(lambda _desk: shown.top() is Cell.READING)
            shown.save(name)
    async with screen(scanning(0.0), REPO) as shown:
        await shown.until(lambda desk: desk.state.result)
    async with screen(scanning(0.0), REPO) as shown:
        await shown.until(lambda desk: desk.state.result)
        shown.save("files-verified")
        await shown.press("4")
        await shown.until(lambda desk: desk.state.cached)
        shown.save("cache")
    cut_short(snapshot / shard_name(7))
    async with screen(scanning(0.0), REPO) as shown:
        await shown.until(lambda desk: desk.state.result)
        shown.save("files-damaged")


async def ranks_views(folder: Path) -> None:
    """The demo: three ranks, one of them with one flipped bit."""
    stage = staging.set_up(folder, ranks=3, size=192 << 20, own_model=None, fault=True, say=lambda _line: None)
    master, rate = staging.free_address(), 16e6
    arguments = staging.rank_arguments(stage, 0, master, rate)
    with staging.other_ranks(stage, master, rate, folder / "ranks.log", hold=True):
        async with screen(["ranks", *arguments], str(stage.folders[0]), start_view="ranks") as shown:
            await shown.until(
                lambda desk: (
                    len(desk.state.ranks) == 3
                    and all(
                        row.status.bytes_done > 0.7 * row.status.bytes_total > 0 for row in desk.state.ranks.values()
                    )
                )
            )
            shown.save("ranks-reading")
            await shown.until(lambda desk: desk.agreement)
            shown.save("ranks-differ")
            await shown.until(lambda desk: desk.held)
            await shown.press("3")
            shown.save("mismatch")
            await shown.press("5")
            shown.save("report")


async def ranks_agreeing(folder: Path) -> None:
    """Four ranks that hold the same."""
    stage = staging.set_up(folder, ranks=4, size=96 << 20, own_model=None, fault=False, say=lambda _line: None)
    master = staging.free_address()
    arguments = staging.rank_arguments(stage, 0, master, 0)
    with staging.other_ranks(stage, master, 0, folder / "ranks.log", hold=False):
        async with screen(["ranks", *arguments], str(stage.folders[0]), start_view="ranks") as shown:
            await shown.until(lambda desk: desk.agreement)
            shown.save("ranks-agree")


def main() -> None:
    """All views, one after the other."""
    OUT.mkdir(exist_ok=True)
    for views in (files_views, ranks_views, ranks_agreeing):
        with tempfile.TemporaryDirectory(prefix="ckpt-tui-") as folder:
            asyncio.run(views(Path(folder)))


if __name__ == "__main__":
    main()
