"""Durable background jobs for Python on the Postgres you already have."""

from ultijobs._definitions.actor import Actor
from ultijobs._definitions.backfill import backfill
from ultijobs._definitions.bounds import Limits, Rate, Retention, Sizes
from ultijobs._definitions.event import Event
from ultijobs._definitions.handle import JobHandle, Request
from ultijobs._definitions.job import job
from ultijobs._definitions.source import BatchSource
from ultijobs._definitions.task import task
from ultijobs._definitions.tenancy import cross_tenant
from ultijobs._outbox.relay import Relay
from ultijobs._queue.records import Enqueued, JobState
from ultijobs._retry import RetryAfter, RetryPolicy, Terminal
from ultijobs._scheduler.scheduler import Scheduler
from ultijobs.app import App
from ultijobs.errors import UltijobsError

__all__ = [
    "Actor",
    "App",
    "BatchSource",
    "Enqueued",
    "Event",
    "JobHandle",
    "JobState",
    "Limits",
    "Rate",
    "Relay",
    "Request",
    "Retention",
    "RetryAfter",
    "RetryPolicy",
    "Scheduler",
    "Sizes",
    "Terminal",
    "UltijobsError",
    "backfill",
    "cross_tenant",
    "job",
    "task",
]
