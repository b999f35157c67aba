"""Both drivers are held to the same cases, and none is left out."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.contract.conftest import HERE, KINDS


def test_every_driver_runs_every_case(request: pytest.FixtureRequest) -> None:
    cases: Counter[str] = Counter()
    for item in request.session.items:
        if item.path.parent == HERE and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            cases[item.callspec.params["harness"]] += 1
            assert not list(item.iter_markers("skip")), item.nodeid
            assert not list(item.iter_markers("skipif")), item.nodeid
    assert set(cases) == set(KINDS)
    assert len(set(cases.values())) == 1, cases
