"""What an interrupted `hf download --local-dir` left behind: its parts lie hidden, under names that tell nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..present.units import count

if TYPE_CHECKING:
    from pathlib import Path

DOWNLOADS = ".cache/huggingface/download"


def unfinished(root: Path) -> str | None:
    """How many parts there are and how much they hold, in words; None where there are none."""
    sizes = []
    for folder, _, names in os.walk(root / DOWNLOADS):
        for name in names:
            if name.endswith(".incomplete"):
                try:
                    sizes.append(os.lstat(os.path.join(folder, name)).st_size)  # noqa: PTH118 - as walk gives it
                except OSError:
                    continue
    if not sizes:
        return None
    parts = count(len(sizes), "unfinished download lies", "unfinished downloads lie")
    return f"{parts} in {DOWNLOADS}, {count(sum(sizes), 'byte')} so far"
