"""Crash policies: what a worker declares is what another one reads from the catalogue."""

import json
from datetime import timedelta

import pytest

from ultijobs import Limits, Retention, RetryPolicy, job
from ultijobs._definitions.catalogue import catalogue
from ultijobs._definitions.registry import Registry
from ultijobs._queue.claims import CrashPolicy
from ultijobs._queue.telling import CatalogEntry
from ultijobs._worker.policies import catalogue_policies, crash_policies


@job(
    idempotency_key=lambda _: "k",
    tenant="none",
    retry=RetryPolicy(attempts=7, backoff="linear", delay="1.5s", max_delay="2m", dead_letter=False),
)
async def odd() -> None: ...


@job(idempotency_key=lambda _: "k", tenant="none")
async def plain() -> None: ...


def test_the_catalogue_says_what_the_declaration_says():
    registry = Registry([odd, plain])
    entries = catalogue(
        registry, redact=("*card*",), retention=Retention(), limits=Limits(), code_version="7", environment="test"
    )
    stored = [
        CatalogEntry(entry.kind, entry.name, entry.queue, json.loads(json.dumps(entry.declaration)))
        for entry in entries
    ]
    assert catalogue_policies(stored) == crash_policies(registry.jobs.values())
    assert catalogue_policies(stored)["odd"] == CrashPolicy(
        "odd", "linear", timedelta(seconds=1.5), timedelta(minutes=2), dead_letter=False
    )


@pytest.mark.parametrize(
    "declaration",
    [{}, {"retry": None}, {"retry": "often"}, {"retry": {"backoff": "fixed"}}, {"retry": {"delay_ms": "x"}}],
)
def test_a_declaration_that_cannot_be_read_leaves_the_driver_s_own_policy(declaration: dict[str, object]):
    assert catalogue_policies([CatalogEntry("job", "strange", None, declaration)]) == {}
