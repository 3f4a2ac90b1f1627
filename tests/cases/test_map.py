"""Each case is named by the test that holds us to it: `grep -rn R04 tests` finds it.

Cases were made after public bug reports. O: one machine, offline; `make_cases.py` writes them. R: two or more ranks.
U: the screens. A test carries its case in its name, in its parameters or as `Case R04 c` in its docstring.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cases import make_cases

#: The cases that need processes or a terminal, and not only files.
LIVE = {
    "R01": "two ranks on different revisions of one repository",
    "R02": "one byte differs on one rank, headers and sizes equal",
    "R03": "one rank fails by itself before or during the comparison",
    "R04": "a peer dies or goes silent",
    "R05": "the group never forms: world size, rank number, address or port is wrong",
    "R06": "Gloo binds to loopback, the wrong interface, or the wrong address family",
    "R08": "live replicas drift apart",
    "R09": "what counts as equal: bits, with dtype and shape",
    "R10": "tensors that do not let themselves be hashed",
    "R12": "ranks that differ by right",
    "R13": "one folder on a shared file system, seen differently",
    "U01": "names as markup",
    "U02": "120,000 rows",
    "U04": "leaving: Ctrl+C, SIGTERM, SIGHUP, crash",
    "U05": "quitting while a thread still hashes",
    "U06": "no colour, poor terminals, no terminal",
}
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def named() -> set[str]:
    """Every case that a test beside this folder names."""
    texts = (path.read_text() for path in TESTS.rglob("test_*.py") if path.parent != Path(__file__).parent)
    return {word.upper() for text in texts for word in re.findall(r"(?<![A-Za-z0-9])[ORUoru]\d\d(?!\d)", text)}


@pytest.mark.parametrize("case", sorted({*make_cases.CASES, *LIVE}))
def test_a_test_names_the_case(case: str, named: set[str]) -> None:
    assert case in named
