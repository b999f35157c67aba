"""All that an application declares, as data: the same bytes for the same code, and no secret among them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Protocol

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._definitions.bounds import Limits, Sizes
from ultijobs._definitions.catalogue import declaration_of, limits_of
from ultijobs._definitions.handle import JobHandle
from ultijobs._definitions.registry import Registry
from ultijobs._definitions.task import TaskHandle
from ultijobs._durations import milliseconds
from ultijobs._queue.retention import Windows
from ultijobs._retention.declared import declared

__all__ = ["manifest"]


class Application(Protocol):
    @property
    def registry(self) -> Registry: ...
    @property
    def schema(self) -> str: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def sizes(self) -> Sizes: ...
    @property
    def retention(self) -> Windows: ...
    @property
    def outbox(self) -> str | None: ...
    @property
    def transactions(self) -> str: ...
    @property
    def redact(self) -> Any: ...


def manifest(application: Application) -> dict[str, Any]:
    """Jobs, tasks and backfills by name, and the bounds that they share. Nothing of it depends on time or place."""
    registry = application.registry
    return {
        "jobs": [_job(handle) for handle in registry.jobs.values()],
        "tasks": [_task(handle) for handle in registry.tasks.values()],
        "backfills": [_backfill(handle) for handle in registry.backfills.values()],
        "limits": limits_of(application.limits),
        "sizes": asdict(application.sizes),
        "retention": declared(application.retention),
        "schema": application.schema,
        "transactions": application.transactions,
        # Where it is may hold a password, and differs from place to place.
        "outbox": application.outbox is not None,
        "redact": list(application.redact),
    }


def _job(handle: JobHandle[Any]) -> dict[str, Any]:
    told = declaration_of(handle)
    retry = told.pop("retry")
    return {
        "name": handle.name,
        "queue": handle.queue,
        **told,
        **retry,
        "retry_delays_ms": [milliseconds(delay) for delay in handle.retry.schedule()],
        "input": _input(handle),
    }


def _task(handle: TaskHandle) -> dict[str, Any]:
    return {"name": handle.name, **declaration_of(handle)}


def _backfill(handle: BackfillHandle[Any]) -> dict[str, Any]:
    told = declaration_of(handle)
    retry = told.pop("retry")
    return {
        "name": handle.name,
        "queue": handle.queue,
        **told,
        **retry,
        "environments": sorted(handle.environments),
    }


def _input(handle: JobHandle[Any]) -> Any:
    """The JSON Schema of the input, one that allows everything where none can be made."""
    try:
        schema = handle.adapter.json_schema(schema_generator=_Ordered)
        return json.loads(json.dumps(schema, sort_keys=True))
    except Exception:  # noqa: BLE001 - a type that has no schema is a type all the same
        return {}


class _Ordered(GenerateJsonSchema):
    """A default that is a set has no order of its own, and another one in each process."""

    def default_schema(self, schema: WithDefaultSchema) -> Any:
        made = super().default_schema(schema)
        if isinstance(schema.get("default"), set | frozenset) and isinstance(made.get("default"), list):
            made["default"] = sorted(made["default"], key=json.dumps)
        return made
