"""Case O25: 120,000 tensors in one file, and a header beyond what the reference library reads."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from ckpt_tui.checkpoint import locate
from ckpt_tui.facts.files import Severity, State
from tests.cases import make_cases
from tests.support.memory import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_MEASURE = """
import json, sys
from tests.support.memory import peak_mib
from ckpt_tui.digest import scan
from ckpt_tui.facts.settings import ScanSettings
result = scan(sys.argv[1], ScanSettings(use_cache=False, threads=1))
print(json.dumps({
    "states": [file.state for file in result.files],
    "segments": max(file.segments for file in result.files),
    "mib": peak_mib(),
}))
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The case's folder."""
    folder = tmp_path_factory.mktemp("O25")
    case = make_cases.CASES["O25"]
    case.fn(folder, case)
    return folder / "a-120000"


def test_a_header_of_120000_tensors_and_its_index_are_read_in_seconds(many: Path) -> None:
    before = time.monotonic()
    found = locate(str(many))
    assert time.monotonic() - before < 5
    header = found.weights[0].header
    assert header is not None
    assert len(header.tensors) == 120_000
    assert found.findings == ()


def test_a_scan_of_them_stays_below_400_mib(many: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(many)], capture_output=True, text=True, timeout=120, check=True, cwd=ROOT
    )
    measured = json.loads(done.stdout)
    assert set(measured["states"]) == {"good"}
    assert measured["segments"] == 120_001
    assert measured["mib"] < 400


def test_a_header_beyond_the_reference_librarys_limit_is_a_warning(tmp_path: Path) -> None:
    body = make_cases.st([make_cases.T("w")], header_len=100_000_008)
    (tmp_path / "model.safetensors").write_bytes(body)
    found = locate(str(tmp_path))
    assert found.files[0].state is State.GOOD
    warning = next(one for one in found.findings if one.severity is Severity.WARNING)
    assert "100,000,008 > 100,000,000" in warning.message
