"""The options that every way of enqueueing takes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypedDict

from ultijobs._definitions.actor import Actor
from ultijobs.typing import AsyncTx, Duration, SyncTx

__all__ = ["AsyncOptions", "OnConflict", "Options", "RequestOptions", "SyncOptions"]

OnConflict = Literal["dedupe", "error"]


class RequestOptions(TypedDict, total=False):
    """`delay` counts from the database's now, `run_at` is aware; they exclude each other.

    A higher `priority` is claimed first. `max_attempts` decides in place of the declared policy's `attempts`.
    """

    delay: Duration | None
    run_at: datetime | None
    priority: int | None
    max_attempts: int | None


class Options(RequestOptions, total=False):
    """With `on_conflict="error"` a key that is held raises `JobDuplicate`; nothing is stored then."""

    on_conflict: OnConflict
    actor: Actor | None


class AsyncOptions(Options, total=False):
    """`tx` joins the caller's transaction; False steps outside of any ambient one."""

    tx: AsyncTx | Literal[False] | None


class SyncOptions(Options, total=False):
    """`tx` joins the caller's transaction; False steps outside of any ambient one."""

    tx: SyncTx | Literal[False] | None
