"""What JSON does not carry unchanged is refused with its path."""

import json
from datetime import date
from enum import IntEnum

import pytest

from ultijobs._json import DEEPEST, decode, encode, is_nonfinite, path_of
from ultijobs.errors import PayloadInvalid


class Level(IntEnum):
    LOW = 1


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [None, True, 0, 10**300, 1.5, "é\U0001f600", [1, [2]], {"a": {"b": [1]}}, nested(DEEPEST)]
)
def test_plain_values_come_back_equal(value):
    assert decode(encode(value, what="output", exact=True)) == value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, "x\x00"]}, "$.a[1]"),
        ({"a": {"b c": "\ud800"}}, '$.a["b c"]'),
        ({"a": {"k\x00": 1}}, "$.a"),
        ([float("nan")], "$[0]"),
        (float("-inf"), "$"),
        ({"when": date(2026, 1, 1)}, "$.when"),
        ({1: "a"}, "$"),
        ({"n": 10**5_000}, "$.n"),
        ((1, 2), "$"),
        (b"raw", "$"),
    ],
)
def test_anything_else_is_refused_with_its_path(value, path):
    with pytest.raises(PayloadInvalid) as caught:
        encode(value, what="output")
    assert caught.value.path == path
    assert path in caught.value.cause


def test_a_nesting_that_parsers_refuse_is_refused_before_it_is_stored():
    with pytest.raises(PayloadInvalid, match=f"deeper than {DEEPEST}"):
        encode(nested(100_000), what="input")


def test_a_subclass_is_refused_only_where_the_type_must_come_back():
    assert encode(Level.LOW, what="input") == "1"
    with pytest.raises(PayloadInvalid, match="Level"):
        encode(Level.LOW, what="output", exact=True)


def test_a_value_over_the_limit_is_refused_with_size_and_limit():
    with pytest.raises(PayloadInvalid, match="1002 bytes as JSON, more than the limit of 1000"):
        encode("x" * 1_000, what="input", limit=1_000)
    assert json.loads(encode("x" * 998, what="input", limit=1_000)) == "x" * 998


def test_a_number_that_is_none_is_found_wherever_it_hides():
    assert path_of({"a": [1.0, (2.0, float("nan"))]}, is_nonfinite) == "$.a[1][1]"
    assert path_of({"a": [1.0, None]}, is_nonfinite) is None


def test_a_value_that_holds_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(PayloadInvalid, match="deeper"):
        encode(loop, what="output")


def test_what_cannot_be_stored_is_named_in_plain_words():
    with pytest.raises(PayloadInvalid, match="is an object, which"):
        encode(object(), what="the result")
    with pytest.raises(PayloadInvalid, match="is a set, which"):
        encode(set(), what="the result")
