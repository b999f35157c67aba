"""One row: key, tenant and options, checked before anything is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from ultijobs import Actor, Limits, Rate, RetryPolicy, job
from ultijobs._definitions.handle import JobHandle
from ultijobs._enqueue.rows import row, wishes
from ultijobs.errors import DurationInvalid, Invariant, PayloadInvalid, TenantMismatch, UltijobsError


class Invoice(BaseModel):
    number: str
    org: str = "acme"


def declared(**options: Any) -> JobHandle[Invoice]:
    def bill(input: Invoice): ...

    return job(Invoice, **{"idempotency_key": lambda i: f"invoice:{i.number}", "tenant": lambda i: i.org, **options})(
        bill
    )


NO_LIMITS = Limits()


def made(handle: JobHandle[Any], item: Any, limits: Limits = NO_LIMITS, **options: Any):
    return row(handle, item, wishes(f"job {handle.name}", options), limit=10_000, limits=limits, code_version=None)


@pytest.mark.parametrize(
    "limits", [Limits(per_tenant=2), Limits(tenant_rate=Rate(1, per="1s")), Limits(fair=["default"])]
)
def test_where_tenants_are_told_apart_each_has_its_lane(limits: Limits):
    assert made(declared(), {"number": "7"}, limits).lane == "t:acme"
    assert made(declared(concurrency=2), {"number": "7"}, limits).lane == "n:bill,t:acme"
    assert made(declared(tenant="none"), {"number": "7"}, limits).lane == ""
    assert made(declared(tenant="none", concurrency=2), {"number": "7"}, limits).lane == "n:bill"


def test_a_queue_that_is_not_fair_has_no_lanes_of_tenants():
    assert made(declared(), {"number": "7"}, Limits(per_process=1, per_queue={"default": 1}, fair=["other"])).lane == ""


def test_key_and_tenant_derive_from_the_validated_value():
    new = made(declared(), {"number": "7"})
    assert (new.idempotency_key, new.tenant_id) == ("invoice:7", "acme")
    assert (new.name, new.queue, new.max_attempts, new.priority, new.lane) == ("bill", "default", 3, 0, "")


def test_the_declaration_decides_queue_attempts_priority_and_lane():
    handle = declared(queue="money", priority=3, retry=RetryPolicy(9), concurrency=2, unique="rerun")
    new = made(handle, Invoice(number="7"))
    assert (new.queue, new.priority, new.max_attempts, new.lane, new.unique) == ("money", 3, 9, "n:bill", "rerun")


def test_the_call_decides_over_the_declaration_and_a_request_over_the_call():
    handle = declared()
    new = made(handle, Invoice(number="7"), priority=5, max_attempts=1, delay="2s", actor=Actor("u:1"))
    assert (new.priority, new.max_attempts, new.delay, new.enqueued_by) == (5, 1, timedelta(seconds=2), "u:1")
    at = datetime(2030, 1, 1, tzinfo=UTC)
    new = made(handle, handle.request(Invoice(number="7"), run_at=at, priority=7), priority=5, delay="2s")
    assert (new.run_at, new.delay, new.priority) == (at, None, 7)


@pytest.mark.parametrize("org", ["none", "global", "public", "null"])
def test_a_tenant_of_any_name_is_an_ordinary_tenant(org):
    assert made(declared(), Invoice(number="1", org=org)).tenant_id == org


def test_no_tenant_is_no_tenant():
    assert made(declared(tenant="none"), Invoice(number="1")).tenant_id is None


@pytest.mark.parametrize("field", ["idempotency_key", "tenant"])
@pytest.mark.parametrize("answer", ["", None, 7, b"x"])
def test_a_key_or_tenant_that_is_no_text_is_refused(field, answer):
    with pytest.raises(Invariant, match=f"job bill: {field}"):
        made(declared(**{field: lambda _: answer}), Invoice(number="1"))


@pytest.mark.parametrize("field", ["idempotency_key", "tenant"])
@pytest.mark.parametrize("answer", ["x\x00", "\ud800"])
def test_a_key_or_tenant_that_cannot_be_stored_is_refused_with_its_path(field, answer):
    with pytest.raises(PayloadInvalid) as caught:
        made(declared(**{field: lambda _: answer}), Invoice(number="1"))
    assert caught.value.path == field


def test_a_key_too_long_for_its_index_is_refused():
    with pytest.raises(Invariant, match="digest"):
        raise_with_fix(lambda: made(declared(), Invoice(number="x" * 2_000)))


def raise_with_fix(call):
    try:
        call()
    except UltijobsError as error:
        raise type(error)(f"{error.cause}; {error.fix}") from error


def test_a_key_function_that_raises_names_the_job_and_keeps_the_cause():
    with pytest.raises(Invariant, match="job bill: idempotency_key raised ZeroDivisionError") as caught:
        made(declared(idempotency_key=lambda _: 1 // 0), Invoice(number="1"))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_actor_of_another_tenant_is_refused_and_one_of_none_is_not():
    with pytest.raises(TenantMismatch):
        made(declared(), Invoice(number="1"), actor=Actor("u:1", "other"))
    assert made(declared(), Invoice(number="1"), actor=Actor("u:1", "acme")).enqueued_by == "u:1"
    assert made(declared(tenant="none"), Invoice(number="1"), actor=Actor("u:1", "other")).tenant_id is None


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"delay": "1s", "run_at": datetime(2030, 1, 1, tzinfo=UTC)}, Invariant),
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)}, Invariant),
        ({"run_at": "2030-01-01"}, Invariant),
        ({"delay": -1}, DurationInvalid),
        ({"delay": "soon"}, DurationInvalid),
        ({"priority": 1.5}, Invariant),
        ({"priority": 10**6}, Invariant),
        ({"max_attempts": 0}, Invariant),
        ({"max_attempts": "3"}, Invariant),
        ({"on_conflict": "ignore"}, Invariant),
        ({"actor": "u:1"}, Invariant),
        ({"dely": "1s"}, TypeError),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options, kind):
    with pytest.raises(kind):
        made(declared(), Invoice(number="1"), **options)


def test_a_request_of_another_handle_is_refused():
    with pytest.raises(Invariant, match="its own handle"):
        raise_with_fix(lambda: made(declared(), declared().request(Invoice(number="1"))))


def test_ids_sort_by_the_time_they_were_made():
    ids = [made(declared(), Invoice(number="1")).id for _ in range(100)]
    assert ids == sorted(ids)
