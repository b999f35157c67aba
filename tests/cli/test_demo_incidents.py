"""The incidents of the demo stay what they are, whenever they are tried again."""

from __future__ import annotations

import asyncio

import pytest

from ultijobs_cli.demo import incidents


async def test_the_index_takes_the_connection_and_never_answers_in_whatever_process_it_is_asked() -> None:
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(incidents.ask_index(), 0.3)
