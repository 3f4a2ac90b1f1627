"""docs/schema/ holds what the types say, and results hold every field that the design promises."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ckpt_tui.facts.files import State
from ckpt_tui.report.json import encode
from tests.agreement.made_up import S2, agreement_of, recorded, scan_of, tiny

ROOT = Path(__file__).parents[2]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_schemas", ROOT / "scripts" / "make_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["scan-1.json", "agreement-1.json", "manifest-1.json", "cache-1.json"])
def test_the_schema_is_what_the_types_say(name: str) -> None:
    written = (ROOT / "docs" / "schema" / name).read_text(encoding="utf-8")
    assert written == load_script().schema(name), "run: python scripts/make_schemas.py"


AGREEMENT = {
    "schema", "verdict", "stage", "weights_equal", "world_size", "ranks", "groups", "absent", "errors", "differences",
    "warnings", "not_compared",
}  # fmt: skip
RANK = {"rank", "host", "path", "file_system", "group", "files_cached", "oldest_digest", "bytes_sent"}
GROUP = {"ranks", "copies", "identity", "content", "standing", "evidence"}
DIFFERENCE = {"file", "role", "kind", "severity", "groups", "segments", "cause"}
CAUSE = {"code", "summary", "facts", "mend", "candidate"}
SCAN = {
    "schema", "host", "tool", "digest_layout", "created", "checkpoint", "identity", "content", "logical_content",
    "files", "findings", "not_compared", "totals",
}  # fmt: skip
FILE = {"name", "role", "size", "digest", "segmentation", "source", "hashed_at", "segments", "claims", "state"}
TOTALS = {"files", "bytes", "files_cached", "bytes_read", "seconds", "threads"}


def decoded(fact: Any) -> Any:
    line = encode(fact)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


def test_an_agreement_has_every_promised_field_even_where_nothing_is_known() -> None:
    flipped = tiny().with_shard(S2, tensors=(("layers.1.w", "x"), ("lm_head", "h")))
    for models in ([tiny()] * 2, [tiny(), flipped], [tiny(), tiny().with_shard(S2, state=State.MISSING)]):
        agreement = decoded(agreement_of(models, absent={2: "silent"}))
        assert set(agreement) >= AGREEMENT
        assert all(set(rank) >= RANK for rank in agreement["ranks"])
        assert all(set(group) >= GROUP for group in agreement["groups"])
        for difference in agreement["differences"]:
            assert set(difference) >= DIFFERENCE
            assert set(difference["cause"]) == CAUSE
            assert all(set(s) == {"name", "kind", "offset", "length"} for s in difference["segments"])
        assert all(set(error) == {"rank", "message"} for error in agreement["errors"])


def test_a_scan_has_every_promised_field_even_where_nothing_is_known() -> None:
    for model in (tiny(), recorded(tiny()), tiny().with_shard(S2, state=State.MISSING)):
        scan = decoded(scan_of(model, fast=True))
        assert set(scan) >= SCAN
        assert "content_sha256" not in scan
        assert all(set(file) >= FILE for file in scan["files"])
        assert set(scan["totals"]) == TOTALS
    assert decoded(scan_of(tiny().with_shard(S2, state=State.MISSING)))["content"] is None
