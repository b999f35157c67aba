"""What no driver stores: checked before an enqueue, so that it fails alike everywhere and harms no transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ultijobs._queue.records import NewJob
from ultijobs.errors import Invariant, PayloadInvalid

__all__ = ["INDEXED_BYTES", "refuse_unstorable"]

INDEXED_BYTES: Final = 2_000
"""What the columns of one index entry may take together; PostgreSQL's limit is 2,704."""


def refuse_unstorable(jobs: Sequence[NewJob]) -> None:
    """Raises `Invariant` for times that contradict each other, `PayloadInvalid` for text that cannot be stored."""
    for job in jobs:
        _times(job)
        texts = (job.name, job.queue, job.tenant_id, job.lane, job.idempotency_key, job.enqueued_by, job.traceparent)
        if any(text is not None and _unstorable(text) for text in (*texts, job.code_version, job.input)):
            raise PayloadInvalid(
                f"job {job.name!r}: a text of the enqueue holds U+0000 or a lone surrogate, which cannot be stored",
                fix="remove the character before the enqueue",
            )
        for what, parts in (
            ("name, tenant and key", (job.name, job.tenant_id, job.idempotency_key)),
            ("queue and lane", (job.queue, job.lane)),
        ):
            size = sum(len((part or "").encode()) for part in parts)
            if size > INDEXED_BYTES:
                raise PayloadInvalid(
                    f"job {job.name[:100]!r}: {what} take {size} bytes together; {INDEXED_BYTES} fit into an index",
                    fix="shorten the idempotency key, for example to a digest of it",
                )


def _times(job: NewJob) -> None:
    if job.run_at is None:
        return
    if job.delay is not None:
        raise Invariant(f"{job.name} is given both a delay and a run_at", fix="give one of them")
    if job.run_at.tzinfo is None:
        raise Invariant(f"the run_at of {job.name} has no time zone", fix="pass an aware datetime")


def _unstorable(text: str) -> bool:
    if "\0" in text:
        return True
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
