"""The base of all facts: frozen, keyword-only, and omitting what is unknown from JSON.

A field without a default is always written (null when it is not known); a field that defaults to None or to an empty
tuple is written only when it says something. Fields are added, never renamed, within a schema version.
"""

from __future__ import annotations

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frozen value. Encodes to JSON and msgpack, and decodes back with its types checked."""
