"""Declaring a backfill: everything is checked where it is written."""

import math

import pytest

from ultijobs import BatchSource, backfill
from ultijobs.errors import Invariant, JobTenantRequired, UltijobsError

SOURCE = BatchSource.table("orders", key="id")


def declared(source=SOURCE, **options):
    async def fill(rows, ctx): ...

    return backfill(source, **{"tenant": "none", **options})(fill)


def test_a_backfill_has_the_documented_defaults():
    handle = declared()
    assert (handle.name, handle.batch, handle.rate, handle.queue) == ("fill", 1_000, 5.0, "default")
    assert (handle.requires, handle.environments, handle.count, handle.timeout) == (None, (), None, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("batch", value) for value in (0, 1.5, True)),
        *(("rate", value) for value in (0, -1, math.nan, math.inf, "5", True)),
        *(("environments", value) for value in ("production", ("",), (3,))),
        ("queue", ""),
        ("timeout", 0),
        ("retry", 3),
        ("count", 3),
        ("requires", ""),
        ("tenant", ""),
    ],
)
def test_a_bad_field_is_refused_naming_backfill_and_field(field, value):
    with pytest.raises(UltijobsError, match=f"backfill fill: {field}"):
        declared(**{field: value})


def test_a_tenant_is_required_and_a_source_must_be_one():
    with pytest.raises(JobTenantRequired):
        declared(tenant=None)
    with pytest.raises(Invariant, match="source"):
        declared(source="orders")


def test_a_handler_must_be_async():
    with pytest.raises(Invariant, match="no async function"):
        backfill(SOURCE, tenant="none", name="x")(lambda rows, ctx: None)


@pytest.mark.parametrize("takes", ["rows", "rows, ctx, step", "*, rows, ctx"])
def test_a_handler_takes_rows_and_ctx(takes):
    scope = {}
    exec(f"async def fill({takes}): ...", scope)
    with pytest.raises(Invariant, match="rows and ctx"):
        backfill(SOURCE, tenant="none")(scope["fill"])


def test_sources_check_what_they_are_given():
    with pytest.raises(Invariant, match="key"):
        BatchSource.table("orders", key="")
    with pytest.raises(Invariant, match="select"):
        BatchSource.select(None, engine=None)
    with pytest.raises(Invariant, match="async function"):
        BatchSource.pages(lambda cursor: ([], None))

    async def of_nothing(): ...

    with pytest.raises(Invariant, match="async function"):
        BatchSource.pages(of_nothing)
    with pytest.raises(Invariant, match="no order"):
        BatchSource.select(object(), engine=object())
