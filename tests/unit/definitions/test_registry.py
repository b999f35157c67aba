"""Registration: modules and handles, names that are taken once, and what is refused by name."""

from types import ModuleType, SimpleNamespace

import pytest

from ultijobs import BatchSource, backfill, job, task
from ultijobs._definitions.registry import Registry
from ultijobs.errors import ActionJobUnbridged, Invariant, JobDuplicate


def handle(name):
    def body(): ...

    return job(idempotency_key=lambda i: "k", tenant="none", name=name)(body)


def calendar(name):
    return task(cron="@daily", tz="UTC", name=name)(lambda occurrence: [])


def module(**exports):
    made = ModuleType("shop.jobs")
    vars(made).update(exports)
    return made


def test_exports_of_a_module_are_found_and_helpers_skipped():
    one, two = handle("one"), handle("two")
    source = BatchSource.table("orders", key="id")

    @backfill(source, tenant="none")
    async def fill(rows, ctx): ...

    registry = Registry([module(b=one, a=two, helper=len, CONSTANT=3, cls=dict, t=calendar("t"), fill=fill)])
    assert list(registry.jobs) == ["one", "two"]
    assert list(registry.backfills) == ["fill"]
    assert dict(registry.tasks) == {}


def test_the_same_handle_twice_is_one_registration():
    one = handle("one")
    registry = Registry([one, module(one=one, alias=one), one])
    assert dict(registry.jobs) == {"one": one}
    assert registry.holds(one)


def test_two_handles_of_one_name_are_refused_naming_both():
    with pytest.raises(JobDuplicate, match=r"handle.<locals>.body and .* are both named 'one'"):
        Registry([handle("one"), handle("one")])
    with pytest.raises(JobDuplicate):
        Registry(tasks=[calendar("t"), calendar("t")])


def test_a_handle_of_the_same_name_is_not_the_registered_one():
    registry = Registry([handle("one")])
    assert not registry.holds(handle("one"))


def test_an_action_projection_is_refused_by_name():
    action = SimpleNamespace(kind="action-job")
    with pytest.raises(ActionJobUnbridged, match=r"shop\.jobs\.refund"):
        Registry([module(refund=action)])
    with pytest.raises(ActionJobUnbridged):
        Registry([action])


def test_a_plain_function_is_told_what_is_missing():
    def charge(): ...

    with pytest.raises(Invariant, match="plain function") as caught:
        Registry([charge])
    assert caught.value.fix == "decorate it with @job"


def test_a_handle_in_the_wrong_list_is_told_the_right_one():
    with pytest.raises(Invariant) as caught:
        Registry([calendar("t")])
    assert caught.value.fix == "pass it as App(tasks=[…])"
    with pytest.raises(Invariant) as caught:
        Registry(tasks=[handle("one")])
    assert caught.value.fix == "pass it as App(jobs=[…])"


@pytest.mark.parametrize("given", ["shop.jobs", handle("one"), module()])
def test_what_is_no_list_is_told_so(given):
    with pytest.raises(Invariant, match="jobs"):
        Registry(given)


def test_an_export_that_raises_when_looked_at_is_a_helper():
    class Lazy:
        def __getattr__(self, name):
            raise RuntimeError(name)

    assert dict(Registry([module(lazy=Lazy())]).jobs) == {}
