"""Arguments of the wrong kind are refused by every call of the Inspector, with a line that says what to give."""

from __future__ import annotations

import inspect
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from ultijobs._ids import new_id
from ultijobs.errors import DurationInvalid, Invariant
from ultijobs.inspection import Action, Inspector, PlanOptions, Sort, Target
from ultijobs.memory import MemoryDriver

ID = UUID(int=1)


@pytest.fixture
def inspector() -> Any:
    """Without types, as a notebook has it."""
    return Inspector(MemoryDriver())


@pytest.mark.parametrize(
    ("call", "args", "options", "at", "fix"),
    [
        ("job", (None,), {}, "id", "give a UUID"),
        ("job", (str(ID),), {}, "id", "give a UUID"),
        ("find", (b"abcdef",), {}, "ref", "give a text"),
        ("stats", (), {"tenant": 5}, "tenant", "give a text or None"),
        ("jobs", (5,), {}, "where", "give one of type Where or a text"),
        ("jobs", (), {"limit": "10"}, "limit", "give a whole number"),
        ("activity", (), {"limit": True}, "limit", "give a whole number"),
        ("jobs", (), {"sort": "largest"}, "sort", "give one of newest, oldest, due, stopped"),
        ("outbox", ("staged",), {}, "states", "give a list, each item one of staged, published, set-aside"),
        ("plan", (Action.RETRY, ["1f3a9c20"]), {}, "target[]", "give a UUID"),
        ("plan", (Action.RETRY, b"state:dead"), {}, "target", None),
        ("plan", (Action.RETRY, [ID], PlanOptions(limit="3")), {}, "options.limit", "give a whole number or None"),  # type: ignore[arg-type]
        ("plan", (Action.RETRY, Target(ids="abc")), {}, "target.ids", "give a list, each item a UUID"),  # type: ignore[arg-type]
        ("apply", (None,), {}, "plan", "give one of type Plan"),
        ("preview", ("nightly", "2026-01-01"), {}, "day", "give a datetime"),
    ],
)
async def test_a_value_of_the_wrong_kind_is_refused_by_its_name(
    inspector: Any, call: str, args: tuple[Any, ...], options: dict[str, Any], at: str, fix: str | None
) -> None:
    with pytest.raises(Invariant) as raised:
        await getattr(inspector, call)(*args, **options)
    assert raised.value.meta["at"] == at
    assert raised.value.cause.startswith(f"{call}: {at} is ")
    assert fix is None or raised.value.fix == fix


async def test_none_and_bytes_are_refused_with_a_code_in_place_of_any_argument(inspector: Any) -> None:
    tried = 0
    for name, method in inspect.getmembers(Inspector, inspect.iscoroutinefunction):
        required = [
            parameter.name
            for parameter in inspect.signature(method).parameters.values()
            if parameter.default is parameter.empty and parameter.name != "self"
        ]
        if name.startswith("_") or not required:
            continue
        for wrong in (None, b"x"):
            with pytest.raises(Invariant):
                await method(inspector, **dict.fromkeys(required, wrong))
            tried += 1
    assert tried > 20


async def test_words_of_enumerations_are_taken_as_texts_and_any_collection_as_a_list(inspector: Any) -> None:
    assert (await inspector.jobs("state:dead", sort="oldest")).rows == await _rows(inspector)
    plan = await inspector.plan("retry", {new_id()})
    assert plan.action is Action.RETRY
    with pytest.raises(DurationInvalid):
        await inspector.publish("paid", ttl=b"1d")


async def _rows(inspector: Any) -> list[Any]:
    rows: list[Any] = (await inspector.jobs("state:dead", sort=Sort.OLDEST)).rows
    return rows


async def test_a_watermark_without_a_zone_and_an_address_that_is_no_text_are_refused(inspector: Any) -> None:
    with pytest.raises(Invariant):
        await inspector.plan(Action.RETRY, [ID], PlanOptions(as_of=datetime(2026, 1, 1)))  # noqa: DTZ001 - the point
    connect: Any = Inspector.connect
    with pytest.raises(Invariant):
        async with connect(None):
            pass
