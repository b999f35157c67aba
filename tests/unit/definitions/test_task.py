"""Declaring a task: its calendar is read where it is written."""

from __future__ import annotations

import pytest

from ultijobs import task
from ultijobs._definitions.cron import meaning, normalise
from ultijobs.errors import CronInvalid, Invariant, TimezoneInvalid, UltijobsError


def declared(**options):
    def nightly(occurrence):
        return []

    return task(**{"cron": "0 3 * * *", "tz": "Europe/Berlin", **options})(nightly)


def test_a_task_has_the_documented_defaults():
    handle = declared()
    assert (handle.name, handle.cron, handle.tz) == ("nightly", "0 3 * * *", "Europe/Berlin")
    assert (handle.catch_up, handle.max_catch_up, handle.is_async) == ("skip", 10, False)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("*/15 * * * *", "*/15 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@annually", "0 0 1 1 *"),
        ("0 22-2 * * *", "0 22,23,0,1,2 * * *"),
        ("0 22-3/2 * * *", "0 22,0,2 * * *"),
        ("55-5/5 * * * *", "55,0,5 * * * *"),
        ("0 0 ? * FRI-MON", "0 0 * * 5,6,0,1"),
        ("0 0 ? * Friday-Monday", "0 0 * * 5,6,0,1"),
        ("0 0 ? * SAT-SUN", "0 0 * * 6,0"),
        ("?/15 ? * ? *", "*/15 * * * *"),
        ("0 0 * january,Sept monday", "0 0 * JAN,SEP MON"),
        ("0 0 1 nov-feb ?", "0 0 1 11,12,1,2 *"),
        ("0 0 * * 7-2", "0 0 * * 0-2/1"),
        ("0 0 * * 5-7", "0 0 * * 5-7"),
        ("15 0 3 * * *", "15 0 3 * * *"),
        ("0 0 L * *", "0 0 L * *"),
        ("0 0 29 2 *", "0 0 29 2 *"),
    ],
)
def test_a_cron_text_is_read(text, read):
    assert normalise(text, "task x: cron") == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * * * *",
        "61 * * * *",
        "* 24 * * *",
        "*/0 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "0 0 * FOO *",
        "0 0 * * MONKEY",
        "@reboot",
        "0 0 * 2 MON#6",
        "x y z a b",
        "0 0 * * 1#2/3",
        "5-1-3 * * * *",
        "٣ * * * *",
        None,
        5,
    ],
)
def test_a_cron_text_that_means_nothing_is_refused_naming_the_task(text):
    with pytest.raises(CronInvalid, match="task nightly: cron"):
        declared(cron=text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 14 * * *", "14:00 every day"),
        ("@weekly", "00:00 on Sunday"),
        ("*/5 * * * *", "Every fifth minute of every hour"),
        ("0 0 1 * MON", "00:00 on the first day of month and on Monday"),
        ("0 0 */2 * MON", "00:00 on every second day of month if it's on Monday"),
        ("0 9 ? * fri-monday", "09:00 on Friday, Saturday, Sunday, and Monday"),
    ],
)
def test_a_text_is_told_in_words(text, words):
    assert meaning(normalise(text, "cron")) == words


@pytest.mark.parametrize("tz", ["Europe/Atlantis", "+02:00", "UTC+2", "", None, 2, "localtime", "../../etc/passwd"])
def test_a_zone_must_be_an_iana_zone(tz):
    with pytest.raises(TimezoneInvalid, match="task nightly: tz"):
        declared(tz=tz)


@pytest.mark.parametrize(("field", "value"), [("catch_up", "all"), ("max_catch_up", 0), ("max_catch_up", 1.5)])
def test_a_bad_field_is_refused_naming_task_and_field(field, value):
    with pytest.raises(Invariant, match=f"task nightly: {field}"):
        declared(**{field: value})


def test_a_function_that_cannot_take_the_occurrence_is_refused():
    def deaf(): ...

    with pytest.raises(Invariant, match="occurrence"):
        task(cron="@daily", tz="UTC")(deaf)
    with pytest.raises(UltijobsError):
        task(cron="@daily", tz="UTC", name="t")("nightly")
