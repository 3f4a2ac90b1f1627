"""As much of JSON Schema as our schema files use; a keyword that is not known here is an error, never passed over."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip
_WORDS = {"$schema", "title", "description", "$defs", "default", "type", "const", "enum", "anyOf", "$ref"}
_FOR = {"properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems"}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, at: str = "$") -> list[str]:
    """What of a value is not as the schema wants it."""
    root = root or schema
    unknown = schema.keys() - _WORDS - _FOR
    if unknown:
        raise NotImplementedError(f"{at}: {sorted(unknown)}")
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if "anyOf" in schema:
        tried = [problems(value, one, root, at) for one in schema["anyOf"]]
        return [] if [] in tried else [f"{at}: fits none: {tried}"]
    found = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "type" in schema and (not isinstance(value, _TYPES[schema["type"]]) or _is_false_number(value, schema["type"])):
        return [*found, f"{at}: {value!r} is no {schema['type']}"]
    if isinstance(value, dict):
        found += _object(value, schema, root, at)
    if isinstance(value, list):
        found += _array(value, schema, root, at)
    return found


def _is_false_number(value: Any, kind: str) -> bool:
    return isinstance(value, bool) and kind in {"integer", "number"}


def _object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    found = [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
    known = schema.get("properties", {})
    more = schema.get("additionalProperties")
    for name, held in value.items():
        if name in known:
            found += problems(held, known[name], root, f"{at}.{name}")
        elif isinstance(more, dict):
            found += problems(held, more, root, f"{at}.{name}")
        elif known:
            found.append(f"{at}: {name} is not in the schema")
    return found


def _array(value: list[Any], schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return [f"{at}: {len(value)} items"]
    each = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
    return [line for place, (held, one) in enumerate(zip(value, each, strict=False))
            if isinstance(one, dict) for line in problems(held, one, root, f"{at}[{place}]")]  # fmt: skip
