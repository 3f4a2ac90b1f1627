"""JSON that comes back as it went out, and files of others that are refused in one line."""

from __future__ import annotations

import json

import pytest

from ckpt_tui.facts.agreement import Agreement
from ckpt_tui.facts.outcome import UsageError
from ckpt_tui.facts.scan import ScanResult
from ckpt_tui.report.json import decode, decode_as, encode
from tests.agreement.made_up import agreement_of, scan_of, tiny


def test_what_was_encoded_is_decoded_as_it_was() -> None:
    scan, agreement = scan_of(tiny()), agreement_of([tiny()] * 2)
    assert decode(encode(scan), "s") == scan
    assert decode(encode(agreement), "a") == agreement


def test_fields_of_later_versions_are_skipped() -> None:
    later = json.dumps({**json.loads(encode(scan_of(tiny()))), "new": [1]}).encode()
    assert decode_as(later, ScanResult, "s") == scan_of(tiny())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"schema": 1}',
        b'{"schema": "other/1"}',
        b'{"schema": "ckpt-tui/scan/1"}',
        b"[" * 100_000,
        b'{"schema": "ckpt-tui/scan/1", "host": ' + b"[" * 100_000,
        encode(scan_of(tiny()))[:-20],
        encode(scan_of(tiny())).replace(b'"role":"weights"', b'"role":"lid"'),
    ],
)
def test_anything_else_is_a_usage_error_that_names_the_file(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"^saved\.json: holds no result"):
        decode(data, "saved.json")


def test_the_error_itself_shows_nothing_that_a_terminal_would_obey() -> None:
    data = encode(scan_of(tiny())).replace(b'"role":"weights"', b'"role":"\\u001b[31m"')
    with pytest.raises(UsageError) as refused:
        decode(data, "saved.json")
    assert str(refused.value).isprintable()


def test_another_kind_of_result_is_refused() -> None:
    with pytest.raises(UsageError, match="another kind"):
        decode_as(encode(scan_of(tiny())), Agreement, "saved.json")


@pytest.mark.parametrize("hostile", ["\\u001b[31m", "\\u202e", "a\\nb"])
def test_names_that_a_terminal_would_obey_are_refused(hostile: str) -> None:
    data = encode(scan_of(tiny())).replace(b"tokenizer.json", hostile.encode())
    with pytest.raises(UsageError, match="control characters"):
        decode(data, "saved.json")
