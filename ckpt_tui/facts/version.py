"""What this program is called, to people and to peers. The one place that holds the version."""

from __future__ import annotations

VERSION = "0.1.0"
TOOL = f"ckpt-tui {VERSION}"
