"""What the two drivers are asked: few names, few keys, few moments, so that the jobs of a run meet."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from hypothesis import strategies as st

from ultijobs._queue.claims import Allowance, ClaimedJob, CrashPolicy, Settlement
from ultijobs._queue.records import Outcome, StopReason, UniqueMode
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs._queue.where import ANY, Field, Op, Term, Where

NAMES = ("charge", "refund")
QUEUES = ("default", "billing")
TENANTS = (None, "acme")
# One key has one mode, as in an application: the mode belongs to the job's declaration.
KEYS = {None: UniqueMode.LIVE, "k": UniqueMode.LIVE, "free": UniqueMode.NOT_RUNNING, "again": UniqueMode.RERUN}
STEPS = ("load", "pack", "ship")
EVENTS = ("paid", "sent")
SECONDS = (0, 1, 10, 60)
LEASE = timedelta(seconds=30)
WORKERS = (UUID(int=1), UUID(int=2))

indexes = st.integers(0, 11)
seconds = st.sampled_from(SECONDS).map(lambda n: timedelta(seconds=n))
scopes = st.sampled_from([None, None, None, "acme"])
lanes = st.tuples(st.sampled_from([False, False, True]), st.sampled_from([False, False, True]))
"""Whether a job is filed under a cap of its name, and in a lane of its tenant."""
new_jobs = st.fixed_dictionaries(
    {
        "lane": lanes,
        "name": st.sampled_from(NAMES),
        "queue": st.sampled_from(QUEUES),
        "idempotency_key": st.sampled_from([None, "k", "k", "free", "free", "again", "again", "again"]),
        "tenant_id": scopes,
        "priority": st.integers(0, 1),
        "max_attempts": st.integers(1, 2),
        "delay": st.none() | st.none() | seconds,
    }
)
all_caps = st.sampled_from([{}, {}, {"charge": 1}, {"charge": 2, "refund": 1}])
allowances = st.sampled_from([None, None, Allowance(1), Allowance(2, {"acme": 0})])
new_events = st.fixed_dictionaries(
    {
        "name": st.sampled_from(EVENTS),
        "key": st.sampled_from([None, "o-1"]),
        "payload": st.sampled_from(["null", '{"n":  1}']),
        "ttl": st.sampled_from([timedelta(seconds=5), timedelta(days=7)]),
    }
)
policies = st.builds(
    CrashPolicy,
    name=st.just("charge"),
    backoff=st.sampled_from(["fixed", "linear", "exponential"]),
    delay=seconds,
    max_delay=st.just(timedelta(seconds=15)),
    dead_letter=st.booleans(),
)
filters = st.sampled_from(
    [
        ANY,
        Where((), tenant="acme"),
        Where((Term(Field.STATE, Op.IS, ("ready", "delayed")),)),
        Where((Term(Field.STATE, Op.IS, ("done", "dead")),)),
        Where((Term(Field.STATE, Op.IS, ("running",), negated=True), Term(Field.QUEUE, Op.IS, ("default",)))),
        Where((Term(Field.JOB, Op.IS, ("ch*",)), Term(Field.PRIORITY, Op.OVER, ("0",)))),
        Where((Term(Field.REASON, Op.IS, ("lease-exhausted",)),)),
        Where((Term(Field.KEY, Op.IS, ("again",)), Term(Field.STATE, Op.IS, ("dead",), negated=True))),
        Where((Term(Field.STEP, Op.IS, ("pack",)),)),
        Where(
            (
                Term(Field.STATE, Op.IS, ("ready", "running", "dead")),
                Term(Field.AGE, Op.OVER, duration=timedelta(seconds=5)),
            )
        ),
        Where((Term(Field.ERROR, Op.CONTAINS, ("LAPSED",)), Term(Field.STATE, Op.IS, ("dead",), negated=True))),
    ]
)


def settlement_of(claimed: ClaimedJob, outcome: Outcome, delay: timedelta) -> Settlement:
    stops = outcome in {Outcome.DEAD, Outcome.FAILED}
    failed = stops or outcome is Outcome.RETRIED
    return Settlement(
        claimed.id,
        claimed.run_id,
        claimed.lease_no,
        outcome,
        claimed.attempt,
        "w-1",
        claimed.queue,
        claimed.unique,
        claimed.lane,
        delay=delay,
        run_at=claimed.claimed_at + delay if outcome is Outcome.SUSPENDED else None,
        stop_reason=StopReason.TERMINAL if stops else None,
        error_code="X_BROKEN" if failed else None,
        fingerprint=f"{claimed.name}-7f" if failed else None,
        error=f"X_BROKEN: {claimed.attempt}" if failed else None,
    )


def step_of(claimed: ClaimedJob, name: str, status: StepStatus, took: timedelta) -> StepWrite:
    kinds = {StepStatus.SLEEPING: StepKind.SLEEP, StepStatus.WAITING: StepKind.WAIT}
    waits = status in kinds
    position = STEPS.index(name)
    return StepWrite(
        claimed.id,
        claimed.run_id,
        claimed.lease_no,
        name,
        kinds.get(status, StepKind.RUN),
        status,
        position,
        output="1" if status is StepStatus.COMPLETED else None,
        error="no" if status is StepStatus.FAILED else None,
        took=took,
        wake_in=took if waits else None,
        event=EVENTS[position % 2] if status is StepStatus.WAITING else None,
        match="o-1" if status is StepStatus.WAITING and position == 0 else None,
    )
