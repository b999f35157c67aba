"""Step names: what is no name is refused, and no two names of a handler are stored as one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultijobs._steps.names import DerivedNames, stored_name
from ultijobs.errors import Invariant

names = st.lists(st.sampled_from(["run:", "sleep:", "1s", "#2", "a"]), min_size=1, max_size=5).map("".join)


@given(names, names)
def test_different_names_are_stored_differently_and_never_as_a_derived_one(one: str, other: str):
    assert (stored_name(one) == stored_name(other)) is (one == other)
    assert not stored_name(one).startswith("sleep:")


def test_equal_durations_count_up_however_they_are_written():
    derived = DerivedNames()
    assert [derived.next("1s"), derived.next(1), derived.next(" 1s"), derived.next(1.5)] == [
        "sleep:1s",
        "sleep:1s#2",
        "sleep:1s#3",
        "sleep:1s500ms",
    ]


@pytest.mark.parametrize("name", ["", None, 1, ["a"], "a\x00", "\ud800", "x" * 501])
def test_what_is_no_name_is_refused(name: Any):
    with pytest.raises(Invariant):
        stored_name(name)
