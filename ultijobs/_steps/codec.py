"""How a step's result is stored and read back: what the first run returns is what every replay returns."""

from __future__ import annotations

import functools
import inspect
import typing
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from ultijobs._json import decode, encode, looks_storable
from ultijobs.errors import PayloadInvalid

__all__ = ["Codec", "PlainCodec", "TypedCodec", "codec_for", "codec_of"]

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

_ANNOTATE: Final = "annotate the return type of the step's function, or call step.returning(T).run(…)"


class Codec(Protocol[R_co]):
    """Encodes a result, and decodes the stored text. Both raise `PayloadInvalid`, naming the step and the path."""

    def encode(self, value: Any, /, *, step: str, limit: int) -> str: ...
    def decode(self, text: str, /, *, step: str) -> R_co: ...


class PlainCodec:
    """None, bool, int, finite float, str, list and dict with str keys, of exactly these types."""

    def encode(self, value: Any, /, *, step: str, limit: int) -> str:
        return "null" if value is None else encode(value, what=_what(step), fix=_ANNOTATE, limit=limit, exact=True)

    def decode(self, text: str, /, *, step: str) -> Any:  # noqa: ARG002 - plain JSON is read whatever the step
        return decode(text)


class TypedCodec(Generic[T]):
    """Whatever pydantic writes as JSON and reads back as `T`."""

    def __init__(self, adapter: TypeAdapter[T]) -> None:
        self._adapter = adapter

    def encode(self, value: Any, /, *, step: str, limit: int) -> str:
        quick = self._quick(value, limit)
        if quick is not None:
            return quick
        try:
            plain = self._adapter.dump_python(value, mode="json", warnings=False)
        except Exception as error:
            raise PayloadInvalid(
                f"{_what(step)} cannot be stored: {type(value).__qualname__} is not JSON: {error}",
                fix=_ANNOTATE,
                meta={"path": "$", "step": step},
            ) from error
        return encode(plain, what=_what(step), fix=_ANNOTATE, limit=limit)

    def _quick(self, value: Any, limit: int) -> str | None:
        """The text of a value that is beyond doubt; pydantic writes a number that JSON lacks as null."""
        try:
            text = self._adapter.dump_json(value, warnings=False)
        except Exception:  # noqa: BLE001 - looked at again, slowly and with the path
            return None
        return text.decode() if len(text) <= limit and b"null" not in text and looks_storable(text) else None

    def decode(self, text: str, /, *, step: str) -> T:
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
            raise PayloadInvalid(
                f"{_what(step)} as stored does not fit its type: {path}: {first['msg']}",
                fix="make the annotation say what the step returns",
                meta={"path": path, "step": step},
            ) from error
        except Exception as error:
            raise PayloadInvalid(
                f"{_what(step)} as stored cannot be read: {type(error).__qualname__}: {error}",
                fix="make the type read what it writes",
                meta={"path": "$", "step": step},
            ) from error


PLAIN: Final = PlainCodec()

_known: Final[weakref.WeakKeyDictionary[Callable[..., Any], Codec[Any]]] = weakref.WeakKeyDictionary()


def codec_for(fn: Callable[..., Any], step: str) -> Codec[Any]:
    """The codec that the return annotation of `fn` asks for. Raises `PayloadInvalid` for a type without a JSON form."""
    # A bound method is a new object at every access; its function is not.
    key: Callable[..., Any] = getattr(fn, "__func__", fn)
    try:
        known = _known.get(key)
    except TypeError:
        return _annotated(fn, step)
    if known is None:
        known = _known[key] = _annotated(fn, step)
    return known


@functools.lru_cache(maxsize=512)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def codec_of(kind: type[T] | TypeAdapter[T], step: str = "?") -> Codec[T]:
    """The codec of a type given to `step.returning`."""
    if isinstance(kind, TypeAdapter):
        return TypedCodec(kind)
    try:
        try:
            return TypedCodec(cast("TypeAdapter[T]", _adapter(cast("Any", kind))))
        except TypeError:
            # An annotation that cannot be hashed.
            return TypedCodec(TypeAdapter(kind))
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise PayloadInvalid(
            f"{_what(step)} cannot be stored: {kind!r} has no JSON form",
            fix="return a pydantic model, a dataclass or plain JSON values",
            meta={"path": "$", "step": step},
        ) from error


def _annotated(fn: Callable[..., Any], step: str) -> Codec[Any]:
    kind = _return_type(fn)
    return PLAIN if kind in _UNTYPED or isinstance(kind, TypeVar) else codec_of(kind, step)


_AWAITED: Final = (Awaitable, Coroutine)
_UNTYPED: Final = (inspect.Signature.empty, Any, object, None, type(None), typing.NoReturn, typing.Never)


def _return_type(fn: Callable[..., Any]) -> Any:
    inner: Any = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    if inspect.isclass(inner):
        return inner if issubclass(inner, BaseModel) else inspect.Signature.empty
    if not inspect.isroutine(inner):
        inner = type(inner).__call__
    if "return" not in getattr(inner, "__annotations__", ()):
        return inspect.Signature.empty
    try:
        kind = typing.get_type_hints(inner, include_extras=True)["return"]
    except Exception:  # noqa: BLE001 - a name that only type checkers see; the value itself is checked then
        return inspect.Signature.empty
    return typing.get_args(kind)[-1] if typing.get_origin(kind) in _AWAITED else kind


def _what(step: str) -> str:
    return f"the result of step {step!r}"
