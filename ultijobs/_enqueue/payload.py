"""The stored form of an input: validated, encoded, and read back as the worker will read it."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import SecretBytes, SecretStr, TypeAdapter, ValidationError

from ultijobs import _json
from ultijobs._definitions.handle import JobHandle, invalid
from ultijobs.errors import PayloadInvalid

__all__ = ["refuse_loss", "stored"]

In = TypeVar("In")

_MASKED: Final = b"**********"


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
    text = _encoded(handle.adapter, value, what, limit)
    return text, handle.validate(text)


def _encoded(adapter: TypeAdapter[In], value: In, what: str, limit: int) -> str:
    # Field names, not aliases: an alias for output need not be one for input.
    try:
        data = adapter.dump_json(value, by_alias=False, round_trip=True, warnings=False)
    except (ValueError, RecursionError):
        data = b""
    if not data or not _json.looks_storable(data):
        return _looked_at_closely(adapter, value, what, limit)
    if b"null" in data or _MASKED in data:
        refuse_loss(adapter.dump_python(value, round_trip=True, warnings=False), what)
    _json.refuse_oversized(len(data), what=what, limit=limit)
    return data.decode()


def _looked_at_closely(adapter: TypeAdapter[In], value: In, what: str, limit: int) -> str:
    try:
        plain = adapter.dump_python(value, mode="json", by_alias=False, round_trip=True, warnings=False)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise PayloadInvalid(f"{what} cannot be stored: {reason}", meta={"path": "$"}) from error
    return _json.encode(plain, what=what, limit=limit)


def refuse_loss(plain: Any, what: str) -> None:
    """Raises for what an encoder replaces without a word: a NaN by null, a secret by its mask."""
    path = _json.path_of(plain, _json.is_nonfinite)
    if path is not None:
        raise PayloadInvalid(f"{what} cannot be stored: {path} is NaN or infinite", meta={"path": path})
    path = _json.path_of(plain, lambda item: isinstance(item, SecretStr | SecretBytes))
    if path is not None:
        raise PayloadInvalid(
            f"{what} cannot be stored: {path} is a secret, of which pydantic writes a mask",
            fix="pass a reference to the secret, and read it in the handler",
            meta={"path": path},
        )
