"""The example that an enqueue answers with when its input is missing or no JSON."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, JsonValue, WithJsonSchema

from ultijobs import job
from ultijobs_cli.inputs import example_of


class Colour(Enum):
    RED = "red"


class Line(BaseModel):
    sku: str
    count: int = 1
    gift: bool


class Order(BaseModel):
    id: int
    lines: list[Line]
    first: Line
    colour: Colour
    kind: Literal["new", "used"]
    note: str | None = None
    price: Annotated[float, Field(gt=0)]


class Tree(BaseModel):
    name: str
    left: Tree | None = None


@pytest.mark.parametrize("model", [Order, Tree, str, int, list[str], JsonValue, dict[str, Any]])
def test_the_example_fits_the_model_as_a_shell_reads_it(model: Any) -> None:
    async def handler(input: Any) -> None:
        pass

    handle = job(model, idempotency_key=lambda _: "k", tenant="none")(handler)
    [text] = shlex.split(example_of(handle))
    assert handle.validate(text) is not None or text == "null"


def test_the_example_has_the_required_fields_alone() -> None:
    async def ship(input: Line) -> None:
        pass

    handle = job(Line, idempotency_key=lambda _: "k", tenant="none")(ship)
    assert example_of(handle) == """'{"sku": "…", "gift": true}'"""


def test_a_model_that_has_no_schema_gets_a_general_example() -> None:
    class Strange:
        pass

    class Holder(BaseModel, arbitrary_types_allowed=True):
        it: Strange
        word: Annotated[str, WithJsonSchema({"type": "string"})]

    async def hold(input: Holder) -> None:
        pass

    handle = job(Holder, idempotency_key=lambda _: "k", tenant="none")(hold)
    assert example_of(handle).startswith("'{")
