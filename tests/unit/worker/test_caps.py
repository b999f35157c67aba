"""The caps that a worker keeps to: its own at first, then those of whoever started last, and rows filed to fit."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import BaseModel

from ultijobs import App, job
from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimAsk
from ultijobs._queue.records import NewJob
from ultijobs._queue.telling import CatalogEntry
from ultijobs._worker.application import catalogue_of
from ultijobs._worker.caps import Caps, declared_caps
from ultijobs.memory import MemoryDriver


class Ask(BaseModel):
    key: str


def mail(**options: int):
    async def mail(input: Ask) -> None: ...

    return job(Ask, idempotency_key=lambda ask: ask.key, tenant="none", **options)(mail)


@pytest.fixture
def driver() -> MemoryDriver:
    return MemoryDriver()


def caps(driver: MemoryDriver, **declared: int) -> Caps:
    return Caps(driver, queues=("default",), names=("mail", "other"), declared=declared)


def test_a_worker_begins_with_what_its_application_declares_of_the_names_it_serves():
    handles = [mail(concurrency=2), mail(name="elsewhere", concurrency=3), mail(name="plain")]
    assert declared_caps(handles, {"mail", "plain"}) == {"mail": 2}


@pytest.mark.parametrize("older", [None, 2])
async def test_an_older_deploy_keeps_to_the_caps_of_the_newer_one(driver: MemoryDriver, older: int | None):
    kept = caps(driver, **({} if older is None else {"mail": older}))
    await driver.publish_catalog(catalogue_of(App(jobs=[mail(concurrency=5)], driver=driver)))
    await kept.keep(await driver.inspect.catalog())
    assert kept.current == {"mail": 5}


async def test_a_cap_that_a_newer_deploy_removed_holds_no_more_and_its_rows_are_filed_back(driver: MemoryDriver):
    kept = caps(driver, mail=2)
    await driver.publish_catalog(catalogue_of(App(jobs=[mail()], driver=driver)))
    await driver.enqueue([NewJob(new_id(), "mail", "null", lane="n:mail") for _ in range(3)])
    assert await kept.keep(await driver.inspect.catalog()) == 3
    assert kept.current == {}
    ask = ClaimAsk("w", {"default": 9}, ("mail",), 9, timedelta(seconds=30))
    assert len(await driver.claim(ask)) == 3


async def test_a_catalogue_that_cannot_be_read_or_speaks_of_others_caps_nothing(driver: MemoryDriver):
    kept = caps(driver, mail=2)
    entries = [
        CatalogEntry("job", "mail", "default", {"concurrency": "many"}),
        CatalogEntry("job", "other", "default", {}),
        CatalogEntry("job", "stranger", "default", {"concurrency": 1}),
    ]
    await kept.keep(entries)
    assert kept.current == {}
