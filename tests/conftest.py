"""Fixtures that tests of several rooms use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.minilm import minilm


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """The real all-MiniLM-L6-v2, unpacked: for reading only."""
    return minilm()
