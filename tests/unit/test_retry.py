"""Retry policies: the arithmetic of the waits, and that a bad policy never comes to be."""

import math
import pickle
from datetime import timedelta

import pytest

from ultijobs._retry import RetryAfter, RetryPolicy, Terminal
from ultijobs.errors import CATALOGUE, UltijobsError


def seconds(policy):
    return [wait.total_seconds() for wait in policy.schedule()]


def test_the_schedule_lists_the_waits_between_the_attempts():
    assert seconds(RetryPolicy(5)) == [1, 2, 4, 8]
    assert seconds(RetryPolicy(5, max_delay="3s")) == [1, 2, 3, 3]
    assert seconds(RetryPolicy(5, "linear", delay=0.5)) == [0.5, 1, 1.5, 2]
    assert seconds(RetryPolicy(5, "fixed")) == [1, 1, 1, 1]
    assert seconds(RetryPolicy(1)) == []


def test_jitter_draws_from_half_to_whole():
    policy = RetryPolicy(delay="10s")
    draws = [policy.delay_for(1).total_seconds() for _ in range(1_000)]
    assert all(5 <= draw <= 10 for draw in draws)
    assert min(draws) < 7.5 < max(draws)


def test_a_late_attempt_does_not_overflow():
    policy = RetryPolicy(1_200, jitter=False)
    assert policy.delay_for(1_100) == timedelta(hours=1)
    assert RetryPolicy(1_200).delay_for(1_100) <= timedelta(hours=1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("attempts", value) for value in (0, -1, 1.5, math.inf, "3", True, None, 10**9)),
        *(("delay", value) for value in ("soon", -1, math.nan, None)),
        *(("max_delay", value) for value in (-1, "later")),
        *(("backoff", value) for value in ("quadratic", None)),
        ("jitter", "yes"),
        ("dead_letter", 0),
    ],
)
def test_a_bad_policy_is_refused_by_field(field, value):
    with pytest.raises(UltijobsError, match=f"RetryPolicy: {field}"):
        RetryPolicy(**{field: value})


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, "2", None, True, 10**400])
def test_an_unusable_retry_after_never_raises_itself(delay):
    assert RetryAfter(delay).meta["retry_after_seconds"] is None


def test_a_usable_retry_after_says_its_seconds_and_survives_pickling():
    error = RetryAfter("2s", "quota")
    again = pickle.loads(pickle.dumps(error))
    assert again.meta["retry_after_seconds"] == error.meta["retry_after_seconds"] == 2.0
    assert (str(again), again.delay) == ("X_RETRY_AFTER: quota", timedelta(seconds=2))


def test_the_errors_to_raise_have_codes_that_can_be_explained():
    assert CATALOGUE["X_TERMINAL"] is Terminal
    assert CATALOGUE["X_RETRY_AFTER"] is RetryAfter


def test_an_exception_as_the_cause_keeps_its_class():
    error = pickle.loads(pickle.dumps(Terminal(KeyError("org"))))
    assert (str(error), Terminal("no").cause) == ("X_TERMINAL: KeyError: 'org'", "no")
