"""The stored form of an input: validated, encoded, and read back as the worker will read it."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError

from ultijobs import _json
from ultijobs._definitions.handle import JobHandle, invalid
from ultijobs.errors import PayloadInvalid

__all__ = ["stored"]

In = TypeVar("In")


def stored(handle: JobHandle[In], input: Any, *, limit: int) -> tuple[str, In]:
    """The JSON text to store, and the value that every worker will get from it.

    Raises `ValidationFailed` for an input that does not fit and `PayloadInvalid`, with a path, for one that cannot be
    stored. An instance of the model is not trusted: it may have been changed since it was made.
    """
    what = f"job {handle.name}: the input"
    try:
        value = handle.adapter.validate_python(input, by_alias=True, by_name=True)
    except ValidationError as error:
        raise invalid(handle.name, error) from error
    text = _json.encode(_dumped(handle, value, what), what=what, limit=limit)
    if "null" in text:
        path = _json.nonfinite(handle.adapter.dump_python(value, round_trip=True, warnings=False))
        if path is not None:
            raise PayloadInvalid(f"{what} cannot be stored: {path} is NaN or infinite", meta={"path": path})
    return text, handle.validate(text)


def _dumped(handle: JobHandle[In], value: In, what: str) -> Any:
    # Field names, not aliases: an alias for output need not be one for input.
    try:
        return handle.adapter.dump_python(value, mode="json", by_alias=False, round_trip=True, warnings=False)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise PayloadInvalid(f"{what} cannot be stored: {reason}", meta={"path": "$"}) from error
