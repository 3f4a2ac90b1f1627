"""Write docs/schema/*.json from the types, so that what others validate against is what is written.

`python scripts/make_schemas.py`; tests/report/test_schemas.py says when it has to run again.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from ckpt_tui.facts.agreement import AGREEMENT_SCHEMA, Agreement
from ckpt_tui.facts.cached import CACHE_SCHEMA, CacheReport
from ckpt_tui.facts.expected import MANIFEST_SCHEMA, Manifest
from ckpt_tui.facts.scan import SCAN_SCHEMA, ScanResult

FOLDER = Path(__file__).parent.parent / "docs" / "schema"
RESULTS: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "scan-1.json": (SCAN_SCHEMA, ScanResult),
    "agreement-1.json": (AGREEMENT_SCHEMA, Agreement),
    "cache-1.json": (CACHE_SCHEMA, CacheReport),
    "manifest-1.json": (MANIFEST_SCHEMA, Manifest),
}


def schema(name: str) -> str:
    """The text of one schema file."""
    schema_id, kind = RESULTS[name]
    body = msgspec.json.schema(kind)
    body["$defs"][kind.__name__]["properties"]["schema"] = {"const": schema_id}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": schema_id}
    return json.dumps(head | body, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in RESULTS:
        (FOLDER / name).write_text(schema(name), encoding="utf-8")


if __name__ == "__main__":
    main()
