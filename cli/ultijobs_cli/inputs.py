"""What an input of a declared job looks like, as it is written in a shell."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ultijobs import JobHandle

__all__ = ["example_of"]

_ANY: Final = """'{"org_id": "o-1"}'"""
_DEPTH: Final = 8
_BY_TYPE: Final[dict[str, Any]] = {
    "string": "…", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None,
}  # fmt: skip


def example_of(handle: JobHandle[Any]) -> str:
    """An input with the fields that the model requires, quoted; a general one where it has no JSON schema."""
    try:
        schema = handle.adapter.json_schema()
    except Exception:  # noqa: BLE001 - it may run a model's own code, for an error that is told in any case
        return _ANY
    return shlex.quote(json.dumps(_value(schema, schema.get("$defs", {}), _DEPTH), ensure_ascii=False))


def _value(schema: dict[str, Any], named: dict[str, Any], depth: int) -> Any:
    """What fits the schema by its type; deeper than `depth` nothing is filled in."""
    if not depth:
        return {}
    options = schema.get("anyOf") or schema.get("oneOf")
    if options or "$ref" in schema:
        chosen = options[0] if options else named.get(schema["$ref"].rpartition("/")[2], {})
        return _value(chosen, named, depth - 1)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    several = schema.get("examples") or schema.get("enum")
    if several:
        return several[0]
    if "properties" in schema:
        required = schema.get("required") or list(schema["properties"])[:1]
        return {name: _value(schema["properties"][name], named, depth - 1) for name in required}
    return _BY_TYPE.get(schema.get("type", "object"), {})
