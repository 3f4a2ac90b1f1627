"""`python -m ckpt_tui` and the `ckpt-tui` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its code."""
    from .cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
