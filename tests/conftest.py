"""Fixtures that tests of several rooms use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.minilm import minilm

# torch asks the resolver for the name of whom it connects to, loopback included. A question that gets lost is asked
# again after a second in all processes of the tests, and not after five.
os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:5")
# Some thousand processes are started: ours are not to be compiled by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """The real all-MiniLM-L6-v2, unpacked: for reading only."""
    return minilm()
