"""What is stored is the validated input, and it is what every worker will get."""

from __future__ import annotations

import enum
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, computed_field
from typing_extensions import TypedDict

from ultijobs import job
from ultijobs._definitions.handle import JobHandle
from ultijobs._enqueue.payload import stored
from ultijobs.errors import PayloadInvalid, ValidationFailed


class Level(enum.StrEnum):
    LOW = "low"


class Address(BaseModel):
    model_config = ConfigDict(extra="forbid")

    street: str = Field(alias="streetName", serialization_alias="Street")

    @computed_field
    @property
    def shouted(self) -> str:
        return self.street.upper()


class Order(BaseModel):
    id: int
    level: Level = Level.LOW
    price: Decimal = Decimal("1.10")
    at: datetime | None = None
    note: float | None = None
    address: Address | None = None
    extra: dict[str, Any] = {}


class Shape(TypedDict):
    side: int


def handle(model: Any = Order) -> JobHandle[Any]:
    def charge(): ...

    return job(model, idempotency_key=lambda i: "k", tenant="none")(charge)


def test_defaults_and_coercions_are_stored():
    text, value = stored(handle(), {"id": "7"}, limit=10_000)
    assert json.loads(text)["id"] == 7
    assert json.loads(text)["level"] == "low"
    assert value == Order(id=7)


def test_an_instance_reads_back_equal_with_every_type():
    order = Order(
        id=1,
        price=Decimal("0.30"),
        at=datetime(2026, 1, 2, tzinfo=UTC),
        address=Address(streetName="Elm"),
        extra={"deep": [1, {"é": None}]},
    )
    text, value = stored(handle(), order, limit=10_000)
    assert value == order
    assert handle().validate(text) == order


@pytest.mark.parametrize(
    ("model", "value"),
    [(list[UUID], [UUID(int=7)]), (Shape, {"side": 3}), (int, 3), (TypeAdapter(dict[str, int]), {"a": 1})],
)
def test_any_type_that_pydantic_knows_can_be_an_input(model, value):
    assert stored(handle(model), value, limit=1_000)[1] == value


def test_both_the_alias_and_the_name_of_a_field_are_read():
    assert handle(Address).validate('{"street": "Elm"}') == handle(Address).validate('{"streetName": "Elm"}')


@pytest.mark.parametrize("given", [{}, {"id": "x"}, None, [], {"id": 1, "at": "yesterday"}])
def test_an_input_that_does_not_fit_is_refused(given):
    with pytest.raises(ValidationFailed):
        stored(handle(), given, limit=1_000)


def test_an_instance_that_was_changed_to_something_else_is_not_trusted():
    order = Order(id=1)
    order.id = "seven"  # type: ignore[assignment]
    with pytest.raises(ValidationFailed, match="id: "):
        stored(handle(), order, limit=1_000)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"id": 1, "extra": {"a": "x\x00"}}, "$.extra.a"),
        ({"id": 1, "extra": {"a": ["\ud800"]}}, "$.extra.a[0]"),
        ({"id": 1, "extra": {"k\x00": 1}}, "$.extra"),
        ({"id": 1, "note": float("nan")}, "$.note"),
        ({"id": 1, "extra": {"n": [float("inf")]}}, "$.extra.n[0]"),
        ({"id": 1, "extra": {"o": object()}}, "$"),
        ({"id": 1, "extra": {"b": b"\xff"}}, "$"),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused_with_its_path(given, path):
    with pytest.raises(PayloadInvalid) as caught:
        stored(handle(), given, limit=10_000)
    assert caught.value.path == path


def test_an_input_that_holds_itself_or_is_too_deep_is_refused():
    loop: dict[str, Any] = {}
    loop["self"] = loop
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    for extra in (loop, {"deep": deep}):
        with pytest.raises(PayloadInvalid):
            stored(handle(), Order.model_construct(id=1, extra=extra), limit=1_000_000)


def test_an_input_over_the_limit_says_size_and_limit():
    with pytest.raises(PayloadInvalid, match=r"has \d+ bytes as JSON, more than the limit of 1000"):
        stored(handle(), {"id": 1, "extra": {"x": "é" * 600}}, limit=1_000)


def test_a_secret_is_refused_and_never_stored_as_its_mask():
    class Login(BaseModel):
        user: str
        passwords: list[SecretStr]

    with pytest.raises(PayloadInvalid) as caught:
        stored(handle(Login), {"user": "a", "passwords": ["hunter2"]}, limit=1_000)
    assert caught.value.path == "$.passwords[0]"
    assert "hunter2" not in str(caught.value)
    assert stored(handle(str), "**********", limit=1_000)[1] == "**********"
