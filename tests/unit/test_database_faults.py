"""What a trouble of the database is called, and the one line that mends it."""

from __future__ import annotations

import asyncpg
import pytest

from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.faults import unavailable


@pytest.mark.parametrize("failure", [asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError])
def test_a_statement_that_ran_into_its_limit_is_not_told_as_a_server_that_is_away(failure: type[Exception]) -> None:
    told = unavailable(
        Dsn.parse("postgresql://ann:secret@db/shop"), failure("canceling statement due to statement timeout")
    )
    assert told.cause == "postgresql://ann@db/shop did not answer in time: canceling statement due to statement timeout"
    assert told.fix == "ultijobs tui --view database --once"


def test_a_server_that_is_away_is_told_as_such() -> None:
    told = unavailable(Dsn.parse("postgresql://db/shop"), ConnectionRefusedError("refused"))
    assert told.cause == "postgresql://db/shop does not answer: refused"
    assert "that the server runs" in told.fix
