"""The digests in a model-signing manifest: a sigstore bundle around an in-toto statement. Pure over bytes.

The signature is not checked, so the digests are worth what the file itself is worth, and whoever shows them says so.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any

import msgspec

from ..present.safe import error_text, escape

_STATEMENT = "application/vnd.in-toto+json"
_V1 = "https://model_signing/signature/v1.0"
_V0 = "https://model_signing/Digests/v0.1"
_HEX = re.compile(r"[0-9a-f]{64}")


class NotSigned(ValueError):
    """These bytes are no sigstore bundle at all: a detached signature of another kind, as like as not."""


class BadManifest(ValueError):
    """A bundle whose digests cannot be used; the text says why."""


class _Envelope(msgspec.Struct):
    payload: str
    payloadType: str = ""  # noqa: N815 - as the bundle spells it


class _Bundle(msgspec.Struct):
    dsseEnvelope: _Envelope  # noqa: N815 - as the bundle spells it


class _Resource(msgspec.Struct):
    name: str
    digest: str
    algorithm: str


class _Subject(msgspec.Struct):
    name: str
    digest: dict[str, str]


class _Predicate(msgspec.Struct):
    resources: tuple[_Resource, ...] = ()
    serialization: dict[str, Any] = {}


class _Statement(msgspec.Struct):
    predicateType: str  # noqa: N815 - as in-toto spells it
    subject: list[_Subject]
    predicate: _Predicate = msgspec.field(default_factory=_Predicate)


def parse_signed(raw: bytes) -> dict[str, str]:
    """Name of each file to its sha256. NotSigned where this is no bundle, BadManifest where it is one of no use."""
    try:
        envelope = msgspec.json.decode(raw, type=_Bundle).dsseEnvelope
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NotSigned from None
    if envelope.payloadType not in {"", _STATEMENT}:
        raise BadManifest(f"it signs a payload of another type, {escape(envelope.payloadType)}")
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
        statement = msgspec.json.decode(payload, type=_Statement)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise BadManifest(f"its payload cannot be read: {error_text(error)}") from None
    if statement.predicateType == _V0:
        return _checked({subject.name: subject.digest.get("sha256", "") for subject in statement.subject})
    if statement.predicateType != _V1:
        raise BadManifest(f"it signs something else than a model: {escape(statement.predicateType)}")
    return _listed(statement)


def _listed(statement: _Statement) -> dict[str, str]:
    resources, how = statement.predicate.resources, statement.predicate.serialization
    if how.get("method") != "files":
        raise BadManifest("its digests are of pieces of files, which are not checked here")
    others = {one.algorithm for one in resources} - {"sha256"}
    if others:
        raise BadManifest(f"its digests are {escape(', '.join(sorted(others)))}, which is not checked here")
    names = {one.name: one.digest for one in resources}
    if len(names) < len(resources):
        raise BadManifest("it names a file twice")
    root = hashlib.sha256(b"".join(map(bytes.fromhex, _checked(names).values()))).hexdigest()
    if [subject.digest.get("sha256") for subject in statement.subject] != [root]:
        raise BadManifest("its files' digests do not add up to the digest that it states for all of them")
    return names


def _checked(names: dict[str, str]) -> dict[str, str]:
    if not all(map(_HEX.fullmatch, names.values())):
        raise BadManifest("a digest in it is no sha256")
    return names
