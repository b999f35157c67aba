"""Limits, sizes and retention are checked where they are written."""

from datetime import timedelta

import pytest

from ultijobs import Actor, Limits, Rate, Retention, Sizes
from ultijobs.errors import Invariant, PayloadInvalid, UltijobsError


def test_the_defaults_are_the_documented_ones():
    assert (Sizes().input, Sizes().output, Sizes().error) == (1_048_576, 1_048_576, 10_000)
    assert Retention().done == timedelta(days=7)
    assert Retention().dead == timedelta(days=90)
    assert Retention().activity == timedelta(days=180)
    assert Limits() == Limits(per_process=None, per_queue={}, per_tenant=None, tenant_rate=None, fair=())


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Limits(per_process=0),
        lambda: Limits(per_tenant=1.5),
        lambda: Limits(per_queue={"emails": 0}),
        lambda: Limits(per_queue={"": 1}),
        lambda: Limits(tenant_rate=3),
        lambda: Limits(fair="emails"),
        lambda: Rate(0, per="1s"),
        lambda: Rate(3, per=0),
        lambda: Sizes(input=0),
        lambda: Sizes(error=10),
        lambda: Retention(done=0),
        lambda: Retention(dead="for ever"),
        lambda: Actor(""),
        lambda: Actor(7),
        lambda: Actor("u", ""),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bad):
    with pytest.raises(UltijobsError):
        bad()


def test_limits_cannot_be_changed_behind_the_declaration():
    given = {"emails": 3}
    limits = Limits(per_queue=given, fair=["emails"])
    given["emails"] = 0
    assert dict(limits.per_queue) == {"emails": 3}
    assert limits.fair == ("emails",)


def test_an_actor_that_cannot_be_stored_is_refused_by_path():
    with pytest.raises(PayloadInvalid) as caught:
        Actor("u\x00")
    assert caught.value.path == "actor.id"


def test_a_rate_reads_as_written():
    assert (Rate(3, per="2s").count, Rate(3, per="2s").per) == (3, timedelta(seconds=2))
    with pytest.raises(Invariant):
        Rate(3, per=-1)
