"""Signing manifests: one that model-signing 1.1.1 wrote, and what can be wrong with one."""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckpt_tui.checkpoint.signing import BadManifest, NotSigned, parse_signed

#: Of a folder with `a.safetensors` (b"a\n") and `sub/b.txt` (b"b\n"), signed with a key made for it.
PAYLOAD = (
    "ewogICJfdHlwZSI6ICJodHRwczovL2luLXRvdG8uaW8vU3RhdGVtZW50L3YxIiwKICAic3ViamVjdCI6IFsKICAgIHsKICAgICAg"
    "Im5hbWUiOiAibSIsCiAgICAgICJkaWdlc3QiOiB7CiAgICAgICAgInNoYTI1NiI6ICI2ZWM3YjczZjU4ODM5NzY4ZjVlYjAwNmQ5"
    "NmIwMmViYWE3YmYzZDMwYzVkYWFjY2M4MzI2NjNjODI2NmUwOTMxIgogICAgICB9CiAgICB9CiAgXSwKICAicHJlZGljYXRlVHlw"
    "ZSI6ICJodHRwczovL21vZGVsX3NpZ25pbmcvc2lnbmF0dXJlL3YxLjAiLAogICJwcmVkaWNhdGUiOiB7CiAgICAicmVzb3VyY2Vz"
    "IjogWwogICAgICB7CiAgICAgICAgImRpZ2VzdCI6ICI4NzQyOGZjNTIyODAzZDMxMDY1ZTdiY2UzY2YwM2ZlNDc1MDk2NjMxZTVl"
    "MDdiYmQ3YTBmZGU2MGM0Y2YyNWM3IiwKICAgICAgICAiYWxnb3JpdGhtIjogInNoYTI1NiIsCiAgICAgICAgIm5hbWUiOiAiYS5z"
    "YWZldGVuc29ycyIKICAgICAgfSwKICAgICAgewogICAgICAgICJkaWdlc3QiOiAiMDI2MzgyOTk4OWI2ZmQ5NTRmNzJiYWFmMmZj"
    "NjRiYzJlMmYwMWQ2OTJkNGRlNzI5ODZlYTgwOGY2ZTk5ODEzZiIsCiAgICAgICAgImFsZ29yaXRobSI6ICJzaGEyNTYiLAogICAg"
    "ICAgICJuYW1lIjogInN1Yi9iLnR4dCIKICAgICAgfQogICAgXSwKICAgICJzZXJpYWxpemF0aW9uIjogewogICAgICAiaGFzaF90"
    "eXBlIjogInNoYTI1NiIsCiAgICAgICJpZ25vcmVfcGF0aHMiOiBbCiAgICAgICAgIm1vZGVsLnNpZyIsCiAgICAgICAgIi5naXRp"
    "Z25vcmUiLAogICAgICAgICIuZ2l0YXR0cmlidXRlcyIsCiAgICAgICAgIi5naXRodWIiLAogICAgICAgICIuZ2l0IgogICAgICBd"
    "LAogICAgICAiYWxsb3dfc3ltbGlua3MiOiBmYWxzZSwKICAgICAgIm1ldGhvZCI6ICJmaWxlcyIKICAgIH0KICB9Cn0="
)
BUNDLE = {
    "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
    "verificationMaterial": {"publicKey": {"hint": "c8efd84b"}, "tlogEntries": []},
    "dsseEnvelope": {
        "payload": PAYLOAD,
        "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"sig": "MEUCIQ==", "keyid": ""}],
    },
}
FILES = {"a.safetensors": hashlib.sha256(b"a\n").hexdigest(), "sub/b.txt": hashlib.sha256(b"b\n").hexdigest()}


def bundle(statement: object, payload_type: str = "application/vnd.in-toto+json") -> bytes:
    payload = base64.b64encode(json.dumps(statement).encode()).decode()
    return json.dumps({"dsseEnvelope": {"payload": payload, "payloadType": payload_type}}).encode()


def statement(**change: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.b64decode(PAYLOAD))
    return found | change


def test_the_digests_of_a_real_one_are_read() -> None:
    assert parse_signed(json.dumps(BUNDLE).encode()) == FILES


def test_the_form_before_version_one_is_read_too() -> None:
    subject = [{"name": name, "digest": {"sha256": digest}} for name, digest in FILES.items()]
    older = statement(subject=subject, predicateType="https://model_signing/Digests/v0.1", predicate={"unused": "x"})
    assert parse_signed(bundle(older)) == FILES


RESOURCES = statement()["predicate"]["resources"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (bundle(statement(), "text/plain"), "payload of another type"),
        (bundle(statement(predicateType="https://slsa.dev/provenance/v1")), "something else than a model"),
        (bundle(statement(predicate={"serialization": {"method": "shards"}, "resources": RESOURCES})), "pieces"),
        (
            bundle(
                statement(
                    predicate={"serialization": {"method": "files"}, "resources": [RESOURCES[0] | {"algorithm": "b3"}]}
                )
            ),
            "b3",
        ),
        (
            bundle(statement(predicate={"serialization": {"method": "files"}, "resources": RESOURCES[:1]})),
            "do not add up",
        ),
        (bundle(statement(predicate={"serialization": {"method": "files"}, "resources": RESOURCES * 2})), "twice"),
        (
            bundle(
                statement(
                    predicate={"serialization": {"method": "files"}, "resources": [RESOURCES[0] | {"digest": "zz"}]}
                )
            ),
            "no sha256",
        ),
        (json.dumps({"dsseEnvelope": {"payload": "not base64!"}}).encode(), "cannot be read"),
        (json.dumps({"dsseEnvelope": {"payload": "W10="}}).encode(), "cannot be read"),
    ],
)
def test_a_bundle_of_no_use_says_why(raw: bytes, words: str) -> None:
    with pytest.raises(BadManifest, match=words):
        parse_signed(raw)


@settings(deadline=None)
@given(st.binary(max_size=100) | st.recursive(st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_other_bytes_are_no_bundle(raw: bytes) -> None:
    with pytest.raises(NotSigned):
        parse_signed(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(statement(), JSON)))
def test_a_payload_of_any_shape_is_read_or_refused(change: dict[str, Any]) -> None:
    with suppress(BadManifest):
        assert set(parse_signed(bundle(statement(**change)))) <= set(FILES)
