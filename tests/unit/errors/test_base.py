"""Errors: a code of their own, a cause, one line that fixes it."""

import pickle
import traceback
import uuid

import pytest

import ultijobs.errors
from ultijobs.errors import CATALOGUE, Invariant, JobDuplicate, UltijobsError


def test_every_public_class_has_a_code_title_fix_and_page_of_its_own():
    classes = [value for name in ultijobs.errors.__all__ if isinstance(value := getattr(ultijobs.errors, name), type)]
    built_in = [cls for cls in classes if issubclass(cls, UltijobsError) and cls is not UltijobsError]
    assert len({cls.code for cls in built_in}) == len(built_in)
    for cls in built_in:
        assert CATALOGUE[cls.code] is cls
        assert cls.docs == f"ultijobs explain {cls.code}"
        assert cls.default_fix
        assert "\n" not in cls.default_fix
        assert cls.title
        assert not cls.title.endswith(".")
        assert cls.__doc__


def test_the_tree_in_the_docstring_is_complete():
    assert {code for code in CATALOGUE if code not in (ultijobs.errors.__doc__ or "")} <= {
        "X_TERMINAL",
        "X_RETRY_AFTER",
    }


def test_a_second_class_for_a_built_in_code_is_refused():
    with pytest.raises(Invariant, match="X_JOB_TIMEOUT"):
        type("Mine", (UltijobsError,), {"code": "X_JOB_TIMEOUT"})


def test_an_unknown_retry_class_is_refused():
    with pytest.raises(Invariant, match="sometimes"):
        type("Mine", (UltijobsError,), {"code": "SHOP_MINE", "retry": "sometimes"})


def test_an_error_survives_pickling():
    holder = uuid.uuid4()
    error = JobDuplicate("taken", meta={"existing_id": str(holder), "state": "ready"})
    again = pickle.loads(pickle.dumps(error))
    assert (again.cause, again.fix, again.existing_id, again.state) == ("taken", error.fix, holder, "ready")
    assert again.lines()[:2] == ("X_JOB_DUPLICATE: taken", "fix: ultijobs jobs show ID")


def test_a_traceback_shows_the_line_that_mends_it():
    shown = traceback.format_exception_only(Invariant("broken", fix="turn it off and on"))
    assert shown[-1] == "fix: turn it off and on\n"
    foreign = type("Mine", (UltijobsError,), {"code": "SHOP_FOREIGN"})
    assert len(traceback.format_exception_only(foreign("broken"))) == 1
