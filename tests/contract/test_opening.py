"""Opening and closing a client."""

from __future__ import annotations

from tests.contract.harness import Harness
from tests.contract.moves import put, row


async def test_a_client_says_where_it_is(harness: Harness) -> None:
    assert harness.driver.url.partition(":")[0] in {"memory", "postgresql"}


async def test_a_closed_client_leaves_the_store_to_the_others(harness: Harness) -> None:
    other = await harness.second()
    job_id = await put(harness)
    await other.close()
    await other.open("app")
    found = await other.inspect.job(job_id)
    assert found is not None
    assert found == await row(harness, job_id)


async def test_closing_twice_is_closing(harness: Harness) -> None:
    other = await harness.second()
    await other.close()
    await other.close()
    await other.open("cli")
