"""Declaring a job: what is accepted, and that nothing wrong gets past the line where it is written."""

from __future__ import annotations

import dataclasses
import functools
import math
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from ultijobs import RetryPolicy, UltijobsError, job
from ultijobs._definitions.registry import Registry
from ultijobs.errors import (
    DurationInvalid,
    IdempotencyRequired,
    Invariant,
    JobTenantRequired,
    ValidationFailed,
)


class Order(BaseModel):
    id: int
    org: str = "acme"


OPTIONS: dict[str, Any] = {"idempotency_key": lambda i: f"order:{i.id}", "tenant": lambda i: i.org}


def declared(fn=None, /, *, model=Order, **options):
    async def charge(input, step, ctx): ...

    return job(model, **{**OPTIONS, **options})(charge if fn is None else fn)


def test_a_job_has_the_documented_defaults():
    handle = declared()
    assert (handle.name, handle.queue, handle.priority, handle.unique) == ("charge", "default", 0, "live")
    assert (handle.timeout, handle.step_timeout, handle.event_poll, handle.concurrency) == (None, None, None, None)
    assert handle.retry == RetryPolicy(3, "exponential", "1s", "1h", jitter=True, dead_letter=True)
    assert handle.takes == {"input", "step", "ctx"}
    assert handle.is_async


def test_a_handle_is_no_function_and_cannot_be_written_on():
    handle = declared()
    assert not callable(handle)
    with pytest.raises(dataclasses.FrozenInstanceError):
        handle.name = "other"
    assert handle.fn.__name__ == "charge"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("timeout", value) for value in (0, -1, math.nan, math.inf, "0s", True, "soon")),
        *(("step_timeout", value) for value in (0, -1, math.nan, math.inf, "never")),
        *(("event_poll", value) for value in (0, math.inf, -1, "x")),
        *(("concurrency", value) for value in (0, 1.5, True, "2", -1)),
        *(("queue", value) for value in ("", " ", "a b", "a,b", "a\n", None, 3, "q" * 300, "\ud800")),
        *(("priority", value) for value in (1.5, "1", True, 10**9)),
        *(("unique", value) for value in ("always", None, 1)),
        *(("retry", value) for value in ("3", 3, {"attempts": 3})),
        *(("name", value) for value in ("", "a b", 7)),
        *(("tenant", value) for value in ("acme", "", 3)),
        ("idempotency_key", "order:1"),
    ],
)
def test_a_bad_field_is_refused_naming_job_and_field(field, value):
    with pytest.raises(UltijobsError, match=rf"job \S*charge: {field}") as caught:
        declared(**{field: value})
    assert isinstance(caught.value, Invariant | DurationInvalid)


@pytest.mark.parametrize("field", ["timeout", "step_timeout", "event_poll"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_a_limit_that_is_no_positive_time_breaks_a_rule(field, value):
    with pytest.raises(Invariant):
        declared(**{field: value})


def test_a_timeout_of_sixty_days_is_fine():
    assert declared(timeout="60d").timeout == timedelta(days=60)


def test_a_key_and_a_tenant_are_required():
    with pytest.raises(IdempotencyRequired, match="job charge"):
        declared(idempotency_key=None)
    with pytest.raises(JobTenantRequired, match="job charge"):
        declared(tenant=None)


@pytest.mark.parametrize("field", ["idempotency_key", "tenant"])
def test_a_key_or_tenant_that_would_be_a_coroutine_is_refused(field):
    async def later(_): ...

    with pytest.raises(Invariant, match=field):
        declared(**{field: later})


def test_a_decorator_without_its_arguments_says_what_is_missing():
    async def charge(input: Order): ...

    with pytest.raises(IdempotencyRequired, match="job charge") as caught:
        job(charge)
    assert "@job(Model" in caught.value.fix


def test_parameters_are_injected_by_name_in_any_order():
    def backwards(ctx, step, input): ...
    def alone(*, step): ...
    def none(): ...

    assert declared(backwards).takes == {"input", "step", "ctx"}
    assert declared(alone).takes == {"step"}
    assert declared(none).takes == frozenset()
    assert not declared(none).is_async


def test_a_parameter_that_nothing_injects_is_refused():
    def unknown(input, database): ...
    def several(*input): ...
    def keywords(**ctx): ...
    def positional(input, /): ...

    for handler in (unknown, several, keywords):
        with pytest.raises(Invariant, match="nothing injects"):
            declared(handler)
    with pytest.raises(Invariant, match="takes input by its position alone"):
        declared(positional)


def test_a_parameter_of_another_name_keeps_its_default_and_what_a_partial_gave_it():
    async def charge(input, database, attempts=3): ...

    partial = functools.partial(charge, database="shop")
    assert declared(partial, name="charge").takes == {"input"}


def test_a_class_is_no_handler():
    class Charge:
        def __init__(self, input): ...

    with pytest.raises(Invariant, match="is a class"):
        declared(Charge)


def test_a_generator_is_refused():
    def lazily(input):
        yield input

    async def lazily_async(input):
        yield input

    for handler in (lazily, lazily_async):
        with pytest.raises(Invariant, match="generator"):
            declared(handler)


def test_what_is_no_function_is_refused():
    with pytest.raises(Invariant, match="not on a function"):
        declared("charge")


def test_a_lambda_and_a_partial_need_a_name_of_their_own():
    async def charge(input, step): ...

    partial = functools.partial(charge)
    for anonymous in (lambda ctx: None, partial):
        with pytest.raises(Invariant, match="name"):
            declared(anonymous)
    assert declared(partial, name="charge").is_async


def test_without_a_model_the_annotation_of_input_decides():
    class Local(BaseModel):
        id: int

    @job(**OPTIONS)
    async def by_annotation(input: Local): ...

    @job(**OPTIONS)
    async def by_type(input: Annotated[list[int], Field(min_length=1)]): ...

    assert by_annotation.validate('{"id": 1}') == Local(id=1)
    assert by_type.validate("[1, 2]") == [1, 2]
    with pytest.raises(ValidationFailed):
        by_type.validate("[]")


def test_an_annotation_in_quotes_is_read_where_it_stands():
    class Local(BaseModel):
        id: int

    def quoted(input: "Local"): ...  # noqa: UP037 - quoted twice, as this module's annotations are texts already

    assert job(**OPTIONS)(quoted).validate('{"id": 1}') == Local(id=1)


def test_a_job_without_input_takes_null():
    @job(idempotency_key=lambda i: "once", tenant="none")
    async def sweep(ctx): ...

    assert sweep.validate("null") is None
    assert sweep.request().input is None
    with pytest.raises(ValidationFailed):
        sweep.validate("{}")


def test_an_input_without_a_type_is_refused():
    def bare(input): ...

    with pytest.raises(Invariant, match="job bare: input has no type"):
        job(**OPTIONS)(bare)


def test_an_annotation_that_cannot_be_read_names_the_way_out():
    def broken(input: Missing): ...  # noqa: F821

    with pytest.raises(Invariant, match="Missing") as caught:
        job(**OPTIONS)(broken)
    assert "@job(Model" in caught.value.fix


def test_a_model_that_the_annotation_contradicts_is_refused():
    def other(input: str): ...

    with pytest.raises(Invariant, match="declared as Order and annotated as str"):
        declared(other)


def test_an_annotation_of_any_contradicts_no_model():
    def anything(input: Any): ...

    assert declared(anything).validate('{"id": 1}') == Order(id=1)


def test_a_type_that_pydantic_cannot_validate_is_refused_at_declaration():
    class Opaque:
        pass

    with pytest.raises(Invariant, match="pydantic cannot validate"):
        declared(model=Opaque)


def test_an_adapter_is_taken_as_it_is():
    adapter = TypeAdapter(list[int])
    assert declared(model=adapter).adapter is adapter


def test_stored_input_that_does_not_fit_lists_paths_and_hides_values():
    with pytest.raises(ValidationFailed) as caught:
        declared().validate('{"id": "secret-value", "org": 3}')
    assert "id: " in caught.value.cause
    assert "org: " in caught.value.cause
    assert "secret-value" not in caught.value.cause
    assert [each["path"] for each in caught.value.meta["errors"]] == ["id", "org"]


def test_a_refused_job_is_not_registered():
    handles = []
    with pytest.raises(Invariant):
        handles.append(declared(timeout=0))
    assert dict(Registry(handles).jobs) == {}
