"""Finds what is stated of a checkpoint in files beside it: checksum files and signing manifests.

Most checkpoints have none, so the parsers and their patterns are made only when a name asks for them.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ..facts.expected import ClaimKind, Expected, ExpectedFile
from ..facts.files import Severity
from ..present.safe import error_text, escape
from ..present.units import count
from .names import Kind, inside, kind_of
from .opening import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .findings import Findings
    from .listing import Folder
    from .sums import Sums

#: What either holds for a hundred thousand files.
_LIMIT = 16 << 20
_SUFFIX = r"\.sha256(?:sums?)?(?:\.txt)?"
_OF_ONE = rf"(?is)(.+?){_SUFFIX}"
_OF_ALL = r"(?is)sha256(?:sums?)?(?:\.txt)?"
#: Names that only suggest it; what turns out to be something else is passed over.
_PERHAPS = r"(?is).*(?:sums|checksum)[^.]*(?:\.(?:txt|sums?|lst))?"
_SIGNED = r"(?is).+\.sig|.+\.sigstore(?:\.json)?"
#: Each of these names holds one of these words.
_WORDS = ("sha256", "sums", "checksum", ".sig")
#: The name that model-signing gives its file unless told otherwise.
_SIGNATURE = "model.sig"
#: Said wherever digests from a signing manifest are shown.
UNCHECKED = "its signature is not checked"


def is_record(name: str) -> bool:
    """Whether a file of this name states digests of others."""
    lower = name.lower()
    if not any(word in lower for word in _WORDS):  # a folder may hold very many names
        return False
    if re.fullmatch(_OF_ONE, name) or re.fullmatch(_OF_ALL, name) or re.fullmatch(_SIGNED, name):
        return True
    return bool(re.fullmatch(_PERHAPS, name)) and kind_of(name) is Kind.OTHER


def statements_beside(root: Path, folders: Iterable[Folder], findings: Findings) -> list[Expected]:
    """What the checksum files and signing manifests in these folders state; what cannot be used is a note."""
    found: list[Expected] = []
    for folder in folders:
        for name in folder.files:
            if name.startswith(".") or not is_record(name):
                continue
            path = folder.path(name)
            try:
                raw = read_file(root / path, _LIMIT)
            except OSError as error:
                _note(findings, path, f"cannot be read, so nothing is checked against it: {error_text(error)}")
                continue
            stated = _signed(raw, path, findings) if re.fullmatch(_SIGNED, name) else _summed(raw, path, findings)
            if stated is not None:
                found.append(stated)
    return found


def _note(findings: Findings, path: str, words: str) -> None:
    findings.add("record-unusable", Severity.NOTE, f"{escape(path)}: {words}", file=escape(path))


def _summed(raw: bytes, path: str, findings: Findings) -> Expected | None:
    from .sums import parse_sums

    name = path.rpartition("/")[2]
    sums = parse_sums(raw, stem_of(name))
    if not sums.sums and not sums.other and not (re.fullmatch(_OF_ONE, name) or re.fullmatch(_OF_ALL, name)):
        return None
    words = unused(sums)
    if words:
        _note(findings, path, words)
    return checksums(sums, path.rpartition("/")[0], escape(path)) if sums.sums else None


def stem_of(name: str) -> bytes | None:
    """The file that a checksum file of this name is of: `model.safetensors` for `model.safetensors.sha256`."""
    match = re.fullmatch(_OF_ONE, name)
    return os.fsencode(match[1]) if match else None


def checksums(sums: Sums, folder: str, origin: str) -> Expected:
    """What a checksum file in a folder of the checkpoint states; names become relative to the checkpoint's root."""
    prefix = f"{folder}/" if folder else ""
    files = [ExpectedFile(name=escape(prefix + os.fsdecode(one.name)), sha256=one.sha256) for one in sums.sums]
    return Expected(kind=ClaimKind.CHECKSUMS, origin=origin, files=tuple(files))


def unused(sums: Sums) -> str | None:
    """What of a checksum file is not used, in words."""
    words = []
    if sums.broken:
        which = f"line {sums.first_broken}" if sums.broken == 1 else f"the first is line {sums.first_broken}"
        words.append(f"{count(sums.broken, 'line is no checksum', 'lines are no checksums')} ({which})")
    if sums.outside:
        words.append(f"{count(sums.outside, 'name leads', 'names lead')} out of its folder")
    if sums.other:
        words.append(f"{count(sums.other, 'line is', 'lines are')} of another algorithm than sha256")
    if sums.given_up:
        words.append("and the rest was not read")
    return "not used: " + ", ".join(words) if words else None


def _signed(raw: bytes, path: str, findings: Findings) -> Expected | None:
    from .signing import BadManifest, NotSigned, parse_signed

    try:
        names = parse_signed(raw)
    except NotSigned:
        if path.rpartition("/")[2] == _SIGNATURE:
            _note(findings, path, "no sigstore bundle, so nothing is checked against it")
        return None
    except BadManifest as error:
        _note(findings, path, f"nothing is checked against it: {error}")
        return None
    message = f"{escape(path)}: its digests are compared, and {UNCHECKED} (`model_signing verify` does that)"
    findings.add("signature-unchecked", Severity.NOTE, message, file=escape(path))
    return signing_manifest(names, path.rpartition("/")[0], escape(path))


def signing_manifest(names: dict[str, str], folder: str, origin: str) -> Expected:
    """What a signing manifest in a folder of the checkpoint states."""
    prefix = f"{folder}/" if folder else ""
    files = []
    for name, digest in names.items():
        path = inside(name.encode("utf-8", "surrogatepass"))
        if path is not None:
            files.append(ExpectedFile(name=escape(prefix + os.fsdecode(path)), sha256=digest))
    return Expected(kind=ClaimKind.SIGNING, origin=f"{origin} ({UNCHECKED})", files=tuple(files))
