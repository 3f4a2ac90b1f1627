"""The screen over a real worker and the real all-MiniLM-L6-v2."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ckpt_tui.tui.app import CkptApp
from ckpt_tui.tui.farewell import farewell
from ckpt_tui.tui.sources import ChildSource
from tests.tui.screen import run
from tests.worker.child import scan_argv

if TYPE_CHECKING:
    from pathlib import Path

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def test_the_real_model_is_scanned_on_the_screen_and_its_published_digest_shown(
    minilm_folder: Path, tmp_path: Path
) -> None:
    async def check() -> None:
        source = ChildSource(scan_argv(minilm_folder, tmp_path / "cache"))
        try:
            app = CkptApp(source, path=str(minilm_folder))
            async with app.run_test(size=(120, 32)) as pilot, asyncio.timeout(50):
                while not (app.desk.state.result and SHA256[:12] in _text(app)):
                    await pilot.pause()
                assert "86.7 MiB" in _text(app)
                await pilot.press("enter")
                while SHA256 not in _text(app):
                    await pilot.pause()
                await pilot.press("escape", "q")
        finally:
            source.close()
        assert app.return_code == 0
        assert farewell(app.desk.state, "")[0].startswith("DONE  0/1 cached, 87.4 MiB read")

    run(check())


def _text(app: CkptApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())
