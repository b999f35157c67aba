"""The catalogue: what the application declares, for those who do not have its code."""

from __future__ import annotations

from tests.contract.harness import Harness
from ultijobs._queue.telling import CatalogEntry


async def test_declarations_are_kept_by_kind_and_name(harness: Harness) -> None:
    charge = CatalogEntry("job", "charge", "billing", {"attempts": 5, "redact": ["card.*"]}, "2026.1", "prod")
    nightly = CatalogEntry("task", "nightly", None, {"cron": "0 3 * * *", "tz": "Europe/Berlin"})
    audit = CatalogEntry("job", "audit", "default", {})
    await harness.driver.publish_catalog([charge, nightly, audit])
    assert await harness.driver.inspect.catalog() == [audit, charge, nightly]
    assert await harness.driver.inspect.catalog("job") == [audit, charge]
    assert await harness.driver.inspect.catalog("backfill") == []


async def test_the_newest_declaration_stands(harness: Harness) -> None:
    await harness.driver.publish_catalog([CatalogEntry("job", "charge", "billing", {"attempts": 5}, "1")])
    newer = CatalogEntry("job", "charge", "payments", {"attempts": 9}, "2", "prod")
    await harness.driver.publish_catalog([newer])
    await harness.driver.publish_catalog([])
    assert await harness.driver.inspect.catalog() == [newer]


async def test_what_is_kept_is_a_copy(harness: Harness) -> None:
    declaration: dict[str, object] = {"attempts": 5}
    await harness.driver.publish_catalog([CatalogEntry("job", "charge", "billing", declaration)])
    declaration["attempts"] = 6
    (entry,) = await harness.driver.inspect.catalog()
    assert entry.declaration == {"attempts": 5}
