"""The weight map of an index file, `model.safetensors.index.json`: which tensor lies in which shard. Pure over bytes.

The map is the list of shards, so it is read strictly: what cannot be read is said with line and column, and nobody
guesses the shards from a listing instead.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import msgspec

from ..present.safe import escape

#: An index beyond this is not read.
LIMIT = 256 << 20
_BOM = b"\xef\xbb\xbf"


class BadIndex(ValueError):
    """The bytes are no usable index; the text says why and where."""


class Twice(NamedTuple):
    """A tensor that the map sends to two shards."""

    tensor: str
    first: str
    second: str


class WeightMap(NamedTuple):
    """A parsed index. Names are as written: tensors to look up, values to be judged before they become paths."""

    shards: dict[str, str]
    #: `metadata.total_size` as written, whatever it is; a hint and no more.
    total_size: Any = None
    twice: tuple[Twice, ...] = ()
    bom: bool = False


_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MAP = msgspec.json.Decoder(dict[str, str])


def parse_index(raw: bytes) -> WeightMap:
    """Parse an index's bytes; BadIndex where they are none."""
    bom = raw.startswith(_BOM)
    body = raw[len(_BOM) :] if bom else raw
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadIndex(f"invalid UTF-8 in line {line}, byte {error.start:,} of the file") from None
    found = _fast(body) or _careful(text)
    if not found.shards:
        raise BadIndex("its weight_map is empty")
    return WeightMap(found.shards, found.total_size, found.twice, bom)


def _fast(body: bytes) -> WeightMap | None:
    """An index as every writer makes it; None leaves anything odd to `_careful`.

    Without escapes a map of n entries holds 4n quotation marks unless a key was there twice.
    """
    if b"\\" in body or body.count(b'"weight_map"') != 1:
        return None
    try:
        top = _TOP.decode(body)
        shards = _MAP.decode(top["weight_map"])
        quotes = bytes(top["weight_map"]).count(b'"')
        metadata = msgspec.json.decode(top.get("metadata", b"null"))
    except (msgspec.MsgspecError, KeyError, RecursionError):
        return None
    if quotes != 4 * len(shards):
        return None
    return WeightMap(shards, metadata.get("total_size") if isinstance(metadata, dict) else None)


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs, in order and with repetitions."""


def _careful(text: str) -> WeightMap:
    import json

    try:
        top = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        raise BadIndex(f"invalid JSON in line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise BadIndex("JSON that is nested too deep or holds a number out of range") from None
    if not isinstance(top, _Object):
        raise BadIndex("line 1, column 1: an index is an object, and this is not")
    maps = [value for key, value in top if key == "weight_map"]
    if len(maps) != 1:
        raise BadIndex(f"an index has one weight_map, and this has {'two' if maps else 'none'} (line 1, column 1)")
    if not isinstance(maps[0], _Object):
        raise BadIndex(f"weight_map is no object ({_place(text, 'weight_map')})")
    shards: dict[str, str] = {}
    twice: list[Twice] = []
    for tensor, file in maps[0]:
        if not isinstance(file, str):
            raise BadIndex(f"the shard of {escape(tensor)} is no string ({_place(text, tensor)})")
        if shards.setdefault(tensor, file) != file:
            twice.append(Twice(tensor, shards[tensor], file))
    metadata = next((value for key, value in top if key == "metadata" and isinstance(value, _Object)), _Object())
    return WeightMap(shards, dict(metadata).get("total_size"), tuple(twice))


def _place(text: str, key: str) -> str:
    """Where a key is written, for people. Keys may be written with escapes, so this is a help and not a promise."""
    import json

    at = max(text.find(json.dumps(key)), text.find(json.dumps(key, ensure_ascii=False)), 0)
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


class Resolved(NamedTuple):
    """Where a map leads: paths relative to the root, and the values that lead out of the index's folder."""

    #: Tensor to the path of its shard; without the tensors of refused shards.
    shards: dict[str, str]
    #: Refused path to the reason.
    refused: dict[str, str]


def resolve(weight_map: WeightMap, folder: str) -> Resolved:
    """Turn a map's values into paths; BadIndex where one cannot name a file at all."""
    paths: dict[str, str] = {}
    refused: dict[str, str] = {}
    for value in dict.fromkeys(weight_map.shards.values()):
        path, reason = _path(value)
        full = path if path.startswith("/") or not folder else f"{folder}/{path}"
        if reason:
            refused[full] = reason
        else:
            paths[value] = full
    shards = {tensor: paths[value] for tensor, value in weight_map.shards.items() if value in paths}
    return Resolved(shards, refused)


def _path(value: str) -> tuple[str, str | None]:
    """A value with `./` and `//` taken out, and why it is refused, if it is."""
    try:
        # JSON is UTF-8 and so are the names that it means, whatever the locale would make of them.
        value = os.fsdecode(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise BadIndex(f"the shard {escape(value)} of its weight_map holds half a surrogate pair") from None
    parts = [part for part in value.split("/") if part not in {"", "."}]
    if not parts or value.endswith("/") or "\0" in value:
        raise BadIndex(f"the shard '{escape(value)}' of its weight_map is no name of a file")
    if value.startswith("/"):
        return value, "an absolute path; an index may only name files in its folder"
    if ".." in parts:
        return value, "a path that climbs out with `..`; an index may only name files in its folder"
    return "/".join(parts), None
