"""A believable incident: a payment provider is down, a paused queue fills up, a deploy left a name without a worker."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from ultijobs.errors import BackfillApplied
from ultijobs.inspection import (
    Action,
    ActivityRow,
    AttemptRecord,
    BackfillRow,
    BackfillState,
    Blocked,
    CatalogEntry,
    Cause,
    Condition,
    Count,
    Forecast,
    Health,
    JobDetail,
    JobPage,
    JobRow,
    Leader,
    LeaseRow,
    OutboxDepth,
    OutboxKind,
    OutboxPage,
    OutboxRow,
    OutboxState,
    Overview,
    Progress,
    QueueRow,
    RunResult,
    Slot,
    Snapshot,
    Stats,
    StepRecord,
    Stuck,
    StuckKind,
    TableHealth,
    Tally,
    TaskDetail,
    TaskRow,
    TaskRun,
    WaitingOn,
    Why,
    WorkerRow,
)

NOW = datetime(2026, 3, 14, 14, 16, 3, tzinfo=UTC)
STRIPE = "TimeoutError: POST https://api.stripe.com/v1/charges timed out after 10s"
TRACE = """Traceback (most recent call last):
  File "/srv/shop/billing.py", line 203, in charge_invoice
    receipt = await step.run("charge", charge, invoice)
  File "/srv/shop/stripe.py", line 41, in charge
    return await client.post("/v1/charges", data)
  File "/usr/lib/python3.12/site-packages/http.py", line 88, in request
    raise TimeoutError(f"POST {url} timed out after {limit}s")
TimeoutError: POST https://api.stripe.com/v1/charges timed out after 10s
"""


def uid(n: int) -> UUID:
    """An id that looks like a UUIDv7 of that day, the same in every run."""
    tail = hashlib.sha256(str(n).encode()).hexdigest()[:12]
    return UUID(f"019ced3a-{n & 0xFFFF:04x}-7abc-8def-{tail}")


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


def job(n: int, state: str = "ready", **values: object) -> JobRow:
    base = JobRow(
        id=uid(n),
        run_id=uid(n + 50_000),
        name="charge_invoice",
        queue="billing",
        state=state,
        attempt=0,
        max_attempts=5,
        priority=0,
        idempotency_key=f"charge:inv_{8000 + n}",
        tenant_id=f"t{n % 41}",
        run_at=ago(minutes=14),
        due_at=ago(minutes=14),
        created_at=ago(minutes=15),
        updated_at=ago(minutes=14),
        started_at=None,
        finished_at=None,
        lease_no=0,
        lease_until=None,
        worker_id=None,
        last_error=None,
        error_code=None,
        fingerprint=None,
        stop_reason=None,
        cancel_reason=None,
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        enqueued_by="user:u_3",
        code_version="9f31c0a",
    )
    return replace(base, **values)  # type: ignore[arg-type]


def dead_job(n: int, **values: object) -> JobRow:
    stopped: dict[str, object] = {
        "attempt": 5,
        "last_error": STRIPE,
        "error_code": "builtins.TimeoutError",
        "fingerprint": "7f3a91c2d4e5",
        "stop_reason": "attempts-exhausted",
        "finished_at": ago(seconds=n % 900),
        "updated_at": ago(seconds=n % 900),
        "worker_id": f"w-{n % 9 + 1:02d}",
    }
    return job(n, "dead", **(stopped | values))


def queues() -> list[QueueRow]:
    return [
        QueueRow(
            "billing",
            "paused",
            Count(51_201),
            Count(1_204),
            0,
            Count(12),
            Count(3_902),
            842_000,
            40,
            4,
            paused_at=ago(minutes=6, seconds=1),
            paused_by="ops",
            pause_reason="provider down",
        ),
        QueueRow("integrations", "running", Count(1_020), Count(8_110), 40, Count(201), Count(0), 131_000, 40, 4),
        QueueRow("mail", "running", Count(12), Count(31), 8, Count(0), Count(3), 800, 20, 2),
        QueueRow("legacy", "unserved", Count(41), Count(0), 0, Count(0), Count(0), 10_920_000, 0, 0),
        QueueRow("exports", "running", Count(7), Count(0), 5, Count(0), Count(11), 63_000, 10, 2),
        QueueRow("default", "running", Count(0), Count(10_000, "capped"), 145, Count(2_901), Count(197), None, 170, 9),
    ]


def causes() -> list[Cause]:
    return [
        Cause(
            "attempts-exhausted",
            "7f3a91c2d4e5",
            "builtins.TimeoutError",
            STRIPE,
            Count(3_902),
            ago(minutes=14, seconds=5),
            ago(seconds=1),
            {"charge_invoice": 3_880, "refund": 22},
            {"billing": 3_902},
            41,
            "charge",
            tuple(uid(n) for n in range(1, 4)),
            retried=12,
            died_again=12,
        ),
        Cause(
            "terminal",
            "11c2a0b9ffe0",
            "X_STEP_DUPLICATE",
            'step "email" is used twice in one attempt',
            Count(187),
            ago(minutes=41),
            ago(minutes=2),
            {"onboard_org": 187},
            {"default": 187},
            9,
            "email",
            (uid(400),),
        ),
        Cause(
            "lease-exhausted",
            "90aa17c3bb21",
            "X_JOB_MAX_ATTEMPTS",
            "it took down its worker 3 times: w-17, w-03, w-17",
            Count(11),
            ago(hours=5),
            ago(hours=4),
            {"export_csv": 11},
            {"exports": 11},
            2,
            None,
            (uid(500),),
            retried=3,
            died_again=0,
        ),
    ]


def stalled_cause() -> Cause:
    dry = "X_BACKFILL_STALLED: the source ran dry while count() still matches 12,400 rows: the two disagree"
    return replace(
        causes()[0],
        stop_reason="terminal",
        fingerprint="55aa01bb02cc",
        error_code="X_BACKFILL_STALLED",
        error=dry,
        count=Count(1),
        jobs={"drop_legacy": 1},
        queues={"maintenance": 1},
        tenants=0,
        step=None,
        retried=0,
        died_again=0,
    )


def stats() -> Stats:
    totals = {
        "ready": Count(52_281),
        "delayed": Count(10_000, "capped"),
        "running": Count(198),
        "suspended": Count(3_114),
        "dead": Count(4_113),
        "failed": Count(0),
        "done": Count(10_000, "capped"),
        "cancelled": Count(17),
    }
    return Stats(queues(), totals, 10_920_000, NOW)


def stuck() -> list[Stuck]:
    stripe, twice, lost = causes()
    where = "state:dead,failed reason:{} fp:{}"
    return [
        Stuck(
            "queue:legacy",
            StuckKind.NO_WORKER,
            2,
            Count(41),
            "no worker serves queue legacy",
            ago(hours=3, minutes=2),
            None,
            None,
            "state:ready queue:legacy",
            queue="legacy",
        ),
        Stuck(
            "dead:attempts-exhausted:7f3a91c2d4e5",
            StuckKind.DEAD,
            2,
            stripe.count,
            "attempts-exhausted · TimeoutError",
            stripe.first_at,
            stripe.last_at,
            "step charge",
            where.format("attempts-exhausted", "7f3a91c2d4e5"),
            queue="billing",
            cause=stripe,
        ),
        Stuck(
            "queue:billing",
            StuckKind.PAUSED,
            2,
            Count(51_201),
            'PAUSED by ops "provider down" · queue billing',
            ago(minutes=6, seconds=1),
            None,
            "ops",
            "state:ready queue:billing",
            queue="billing",
        ),
        Stuck(
            "lease:w-17",
            StuckKind.LEASE,
            2,
            Count(3),
            "the lease ended and no worker has taken the jobs over",
            ago(minutes=4),
            ago(minutes=4),
            "w-17",
            "state:running worker:w-17",
        ),
        Stuck(
            "dead:terminal:11c2a0b9ffe0",
            StuckKind.DEAD,
            1,
            twice.count,
            "terminal · X_STEP_DUPLICATE",
            twice.first_at,
            twice.last_at,
            "step email",
            where.format("terminal", "11c2a0b9ffe0"),
            queue="default",
            cause=twice,
        ),
        Stuck(
            "queue:integrations",
            StuckKind.STARVING,
            1,
            Count(1_020),
            "queue integrations is behind · 40 of 40 slots busy",
            ago(seconds=131),
            None,
            None,
            "state:ready queue:integrations",
            queue="integrations",
        ),
        Stuck(
            "dead:lease-exhausted:90aa17c3bb21",
            StuckKind.DEAD,
            1,
            lost.count,
            "lease-exhausted · it took down its worker",
            lost.first_at,
            lost.last_at,
            None,
            where.format("lease-exhausted", "90aa17c3bb21"),
            queue="exports",
            cause=lost,
        ),
        Stuck(
            "name:send_fax",
            StuckKind.NO_WORKER,
            1,
            Count(6),
            "no worker knows the name send_fax",
            None,
            None,
            None,
            "state:ready job:send_fax",
        ),
    ]


def stuck_around() -> list[Stuck]:
    """What is stuck beside the queue itself: the outbox, a backfill, the schedule."""
    where = "state:dead,failed reason:{} fp:{}"
    return [
        Stuck(
            "outbox:set-aside",
            StuckKind.OUTBOX,
            2,
            Count(2),
            "set aside: the queue refused them again and again",
            ago(minutes=4),
            None,
            None,
            None,
        ),
        Stuck(
            "dead:attempts-exhausted:55aa",
            StuckKind.BACKFILL,
            1,
            Count(1),
            "terminal · X_BACKFILL_STALLED",
            ago(minutes=22),
            ago(minutes=22),
            None,
            where.format("terminal", "55aa01bb02cc"),
            cause=stalled_cause(),
        ),
        Stuck(
            "task:nightly_digest",
            StuckKind.CRON,
            1,
            Count(1),
            "nightly_digest missed 14:00 · no scheduler leads",
            NOW.replace(minute=0, second=0),
            None,
            None,
            None,
        ),
        Stuck(
            "tenant:t42",
            StuckKind.THROTTLED,
            0,
            Count(1_020),
            "rate 60/1m · tenant t42 crm_sync",
            ago(hours=2),
            ago(seconds=1),
            "t42",
            "state:ready tenant:t42 job:crm_sync",
            tenant="t42",
        ),
    ]


def overview(lines: Sequence[Stuck] | None = None) -> Overview:
    return Overview(
        NOW,
        stats(),
        list(stuck() if lines is None else lines),
        198,
        240,
        9,
        10_920_000,
        queues(),
        counters={"w-03": {"done": 31_000, "dead": 3_902}},
    )


def minutes_before(minutes: int) -> Overview:
    """The same trouble as it was then: fewer dead, more done, a queue that filled up."""
    now = overview()
    done = 31_000 - 31 * minutes - 40 * minutes * minutes
    dead = round(3_902 * (1 - minutes / 15) ** 2)
    rows = [replace(q, ready=Count(round(q.ready.value * (1 - minutes / 20)))) for q in now.queues]
    totals = dict(now.stats.totals) | {"ready": Count(sum(row.ready.value for row in rows)), "dead": Count(4_113 - 9)}
    first = next(line.cause for line in now.stuck if line.cause is not None)
    then = replace(first, count=Count(dead))
    return replace(
        now,
        stuck=[replace(line, cause=then, count=then.count) if line.cause == first else line for line in now.stuck],
        as_of=ago(minutes=minutes),
        stats=replace(now.stats, totals=totals),
        queues=rows,
        counters={"w-03": {"done": done, "dead": dead}},
    )


def calm() -> Overview:
    """Nothing is stuck."""
    totals = {
        "ready": Count(12),
        "delayed": Count(31),
        "running": Count(8),
        "suspended": Count(2_901),
        "dead": Count(0),
        "failed": Count(0),
        "done": Count(10_000, "capped"),
        "cancelled": Count(0),
    }
    rows = [QueueRow("mail", "running", Count(12), Count(31), 8, Count(0), Count(0), 800, 20, 2)]
    return Overview(NOW, Stats(rows, totals, 800, NOW), [], 8, 20, 2, 800, rows)


def jobs() -> list[JobRow]:
    paused = {"waiting_on": WaitingOn.PAUSED}
    rows = [job(n, **paused) for n in range(1, 9)]
    rows += [
        job(
            20,
            "delayed",
            name="crm_sync",
            queue="integrations",
            attempt=2,
            tenant_id="t42",
            run_at=NOW + timedelta(seconds=41),
            waiting_on=WaitingOn.BACKOFF,
            due_at=ago(minutes=9),
            error_code="httpx.ReadTimeout",
        ),
        job(
            21,
            "suspended",
            name="onboard_org",
            queue="default",
            tenant_id="t88",
            max_attempts=5,
            run_at=NOW + timedelta(hours=19),
            due_at=ago(days=2, hours=4),
            waiting_on=WaitingOn.SLEEP,
        ),
        job(
            22,
            "suspended",
            name="onboard_org",
            queue="default",
            tenant_id="t12",
            run_at=NOW + timedelta(days=6),
            created_at=ago(hours=7),
            due_at=ago(hours=7),
            waiting_on=WaitingOn.EVENT,
        ),
        job(
            23,
            "running",
            name="export_csv",
            queue="exports",
            attempt=1,
            max_attempts=3,
            tenant_id="t5",
            worker_id="w-09",
            started_at=ago(seconds=63),
            lease_until=NOW + timedelta(seconds=21),
            running_step="render",
        ),
        job(
            24,
            "ready",
            name="send_fax",
            queue="legacy",
            tenant_id=None,
            waiting_on=WaitingOn.NO_WORKER,
            due_at=ago(hours=3, minutes=2),
        ),
        dead_job(25),
        dead_job(26, name="refund"),
        job(
            27,
            "done",
            name="send_receipt",
            queue="mail",
            attempt=1,
            finished_at=ago(seconds=4),
            updated_at=ago(seconds=4),
        ),
        job(
            28,
            "cancelled",
            name="send_receipt",
            queue="mail",
            finished_at=ago(minutes=40),
            updated_at=ago(minutes=40),
            cancel_reason="duplicate campaign",
        ),
    ]
    return rows


def page(rows: Sequence[JobRow] | None = None, next: str | None = "n2") -> JobPage:
    return JobPage(list(jobs() if rows is None else rows), next, NOW)


def dead_page() -> JobPage:
    return JobPage([dead_job(n) for n in range(1, 31)], "n2", NOW)


def step(run: UUID, position: int, name: str, status: str, **values: object) -> StepRecord:
    base = StepRecord(
        run_id=run,
        name=name,
        kind="run",
        status=status,
        output=None,
        error=None,
        position=position,
        started_at=ago(minutes=14),
        completed_at=None,
        wake_at=None,
        tries=1,
        lease_no=1,
    )
    return replace(base, **values)  # type: ignore[arg-type]


def attempt(run: UUID, n: int, worker: str, started: datetime, seconds: float, **values: object) -> AttemptRecord:
    base = AttemptRecord(
        run,
        uid(1),
        n,
        n,
        worker,
        "retried",
        started,
        started + timedelta(seconds=seconds),
        "builtins.TimeoutError",
        STRIPE,
        TRACE,
    )
    return replace(base, **values)  # type: ignore[arg-type]


def detail() -> JobDetail:
    """A dead job: two steps stored, the third failed in each of its five attempts."""
    row = dead_job(1, created_at=ago(minutes=14, seconds=51), finished_at=ago(seconds=5), updated_at=ago(seconds=5))
    run = row.run_id
    first = ago(minutes=14, seconds=49)
    return JobDetail(
        row,
        [
            step(run, 1, "load", "completed", started_at=first, completed_at=first + timedelta(milliseconds=12)),
            step(
                run,
                2,
                "reserve",
                "completed",
                started_at=first + timedelta(milliseconds=20),
                completed_at=first + timedelta(milliseconds=100),
            ),
            step(
                run,
                3,
                "charge",
                "failed",
                tries=5,
                error=STRIPE,
                started_at=first + timedelta(milliseconds=130),
                lease_no=5,
            ),
        ],
        [
            attempt(run, 1, "w-03", first, 10.2),
            attempt(run, 2, "w-09", ago(minutes=13, seconds=32), 10.0),
            attempt(run, 3, "w-03", ago(minutes=11, seconds=23), 10.0),
            attempt(
                run,
                4,
                "w-11",
                ago(minutes=8, seconds=1),
                31.0,
                outcome="lost",
                error_code="X_JOB_LEASE_LOST",
                error="the lease lapsed: the worker gave no sign for 30s",
                traceback=None,
            ),
            attempt(run, 5, "w-03", ago(seconds=15), 10.0, outcome="dead"),
        ],
        [],
    )


def sleeping_detail() -> JobDetail:
    """A suspended job that waits for an event."""
    row = next(r for r in jobs() if r.waiting_on is WaitingOn.EVENT)
    run, began = row.run_id, ago(hours=7)
    return JobDetail(
        row,
        [
            step(run, 1, "provision", "completed", started_at=began, completed_at=began + timedelta(seconds=2)),
            step(
                run,
                2,
                "welcome",
                "completed",
                started_at=began + timedelta(seconds=2),
                completed_at=began + timedelta(seconds=3),
            ),
            step(
                run,
                3,
                "approval",
                "waiting",
                kind="wait",
                started_at=began + timedelta(seconds=3),
                wake_at=NOW + timedelta(days=6),
                event="org.approved",
                match="o-12",
            ),
        ],
        [],
        [1_000, 2_000, 4_000, 8_000],
    )


def why() -> Why:
    return Why(
        uid(1),
        "ready",
        WaitingOn.PAUSED,
        ago(minutes=6),
        "queue billing, paused by ops (provider down)",
        "ultijobs queues resume billing",
    )


def tally() -> list[Tally]:
    return [
        Tally("t17", Count(3_100), {"dead": 3_100, "ready": 9_100}, ago(minutes=14), ago(seconds=1)),
        Tally("t3", Count(802), {"failed": 2, "dead": 800}, ago(minutes=9), ago(minutes=2)),
        Tally(None, Count(4), {"dead": 4}, ago(hours=2), ago(hours=1)),
    ]


def worker(n: int, name: str, state: str = "healthy", **values: object) -> WorkerRow:
    base = WorkerRow(
        worker_id=name,
        instance=uid(70_000 + n),
        host=f"node-{n % 4 + 1}",
        pid=70 + n,
        version="0.1.0",
        code_version="9f31c0a",
        environment="production",
        state=state,
        queues=("billing", "mail"),
        names=("charge_invoice", "refund", "send_receipt"),
        concurrency=40,
        running=11,
        free_slots=29,
        started_at=ago(hours=3, minutes=10),
        heartbeat_at=ago(seconds=1),
        claimed_at=ago(seconds=4),
        settled_at=ago(seconds=1),
        loop_lag_ms=3,
        rss_bytes=412 * 2**20,
        listening=True,
        counters={"done": 31_000, "retried": 190, "dead": 3_902, "lost": 1},
    )
    return replace(base, **values)  # type: ignore[arg-type]


def workers() -> list[WorkerRow]:
    exports = {"queues": ("exports",), "names": ("export_csv",)}
    return [
        worker(1, "w-03"),
        worker(2, "w-09", running=40, free_slots=0, loop_lag_ms=1_480, listening=False, **exports),
        worker(3, "w-11", "draining", code_version="88aa120", running=3, free_slots=0, queues=("default",)),
        worker(
            4,
            "w-17",
            "gone",
            heartbeat_at=ago(minutes=4, seconds=2),
            claimed_at=ago(minutes=5, seconds=31),
            settled_at=ago(minutes=5, seconds=40),
            **exports,
        ),
        worker(5, "w-02", "wedged", running=1, free_slots=39, loop_lag_ms=14_000, settled_at=ago(minutes=9)),
        worker(6, "w-04", "idle", running=0, free_slots=40, counters={}, claimed_at=None, settled_at=None),
        worker(7, "w-16", "drained", heartbeat_at=ago(hours=7), stopped_at=ago(hours=7), started_at=ago(hours=9)),
        worker(8, "w-12", "drained", running=0, free_slots=0, rss_bytes=3 * 2**29),
    ]


def workers_before() -> list[WorkerRow]:
    """A minute ago: what has settled since makes the rates."""
    grown = {"done": 14, "retried": 12, "dead": 178}
    return [
        replace(w, counters={name: count - grown.get(name, 0) for name, count in w.counters.items()})
        for w in workers()
        if not w.ended
    ]


def lease(n: int, name: str, holder: str, left: float, ran: float, **values: object) -> LeaseRow:
    base = LeaseRow(
        id=uid(80_000 + n),
        run_id=uid(90_000 + n),
        name=name,
        queue="exports",
        tenant_id=f"t{n}",
        worker_id=holder,
        attempt=1,
        max_attempts=3,
        lease_no=n,
        running_step=None,
        started_at=ago(seconds=ran),
        lease_until=NOW + timedelta(seconds=left),
        expired=left <= 0,
    )
    return replace(base, **values)  # type: ignore[arg-type]


def leases() -> list[LeaseRow]:
    return [
        lease(1, "export_csv", "w-17", -212, 331, running_step="render"),
        lease(2, "export_csv", "w-17", -211, 330, running_step="upload", attempt=3),
        lease(3, "export_csv", "w-17", -208, 322, running_step="render", tenant_id=None),
        lease(4, "crm_sync", "w-09", 21, 41, queue="integrations", running_step="push", attempt=2, max_attempts=5),
        lease(5, "export_csv", "w-09", 24, 63, progress=Progress(1_200, 4_800, "rows")),
        lease(6, "nightly_agg", "w-02", 28, 8_040, queue="default", running_step="scan", max_attempts=1),
        lease(7, "send_receipt", "w-03", 29, 0.4, queue="mail"),
        lease(8, "onboard_org", "w-11", 29, 12, queue="default", running_step="welcome"),
    ]


def leader() -> Leader:
    return Leader("node-1:77", 12, NOW + timedelta(seconds=22), NOW)


def act(n: int, action: str, target: str, at: datetime, **values: object) -> ActivityRow:
    base = ActivityRow(
        id=uid(60_000 - n),
        at=at,
        actor="ops@bastion",
        source="tui",
        action=action,
        target=target,
        reason=None,
        as_of=at,
        matched=1,
        done=1,
        refused=0,
        failed=0,
        finished_at=at + timedelta(milliseconds=14),
        equivalent=None,
        detail={},
    )
    return replace(base, **values)  # type: ignore[arg-type]


def activity() -> list[ActivityRow]:
    stripe = "state:dead,failed reason:attempts-exhausted fp:7f3a91c2d4e5"
    return [
        act(1, "retry", stripe, ago(seconds=8), matched=3_902, done=None, refused=None, failed=None, finished_at=None,
            reason="provider is back",
            equivalent=f"ultijobs jobs retry --where '{stripe}' --as-of 2026-03-14T14:15:55Z"),
        act(2, "retry", stripe, ago(minutes=3), detail={"from_step": "charge", "limit": 1}, reason="probe",
            equivalent=f"ultijobs jobs retry --where '{stripe}' --from-step charge --limit 1"),
        act(3, "pause", "queue:billing", ago(minutes=6), reason="provider down",
            equivalent="ultijobs queues pause billing --reason 'provider down'"),
        act(4, "cancel", "state:ready job:send_receipt tenant:t9", ago(minutes=40), actor="mia@laptop", source="cli",
            matched=212, done=200, refused=12, reason="duplicate campaign",
            equivalent="ultijobs jobs cancel --where 'state:ready job:send_receipt tenant:t9'"),
        act(5, "drain-worker", "worker:w-11", ago(hours=2), source="cli", equivalent="ultijobs workers drain w-11"),
        act(6, "run-task", "task:nightly", ago(hours=5), actor="deploy", source="api", matched=4, done=3, failed=1),
        act(7, "retry", "queue:mail", ago(days=1, hours=2), done=None, refused=None, failed=None, finished_at=None),
    ]  # fmt: skip


def task(name: str, cron: str, **values: object) -> TaskRow:
    base = TaskRow(
        name=name,
        cron=cron,
        tz="Europe/Berlin",
        catch_up="one",
        max_catch_up=24,
        next=(NOW + timedelta(minutes=4)).astimezone(ZoneInfo("Europe/Berlin")),
        last_fired=ago(minutes=1, seconds=3),
        late_since=None,
        watermark=ago(minutes=1, seconds=3),
        armed_at=ago(days=40),
        last_error=None,
    )
    return replace(base, **values)  # type: ignore[arg-type]


def runs(signs: str, every: timedelta, **values: object) -> tuple[TaskRun, ...]:
    """One per sign, the latest first."""
    kinds = dict(zip("✓▶✗c–!·", RunResult, strict=True))
    told = {"took_ms": None, "error_code": None, **values}
    return tuple(TaskRun(NOW - n * every, kinds[sign], **told) for n, sign in enumerate(signs))  # type: ignore[arg-type]


def tasks() -> list[TaskRow]:
    late = NOW.replace(hour=14, minute=0, second=0)
    return [
        task("nightly_digest", "0 14 * * *", catch_up="one", late_since=late, next=late + timedelta(days=1),
             last_fired=late - timedelta(days=1), watermark=late - timedelta(days=1), meaning="14:00 every day",
             runs=runs("✓" * 7 + "·" * 8, timedelta(days=1), took_ms=41_300)),
        task("sync_rates", "*/5 * * * *", catch_up="none", meaning="Every fifth minute of every hour",
             runs=runs("▶✗✗✗–!✓c✓✓✓✓✓✓✓", timedelta(minutes=5), error_code="X_RATES_STALE")),
        task("invoices", "0 6 1 * *", tz="America/New_York", catch_up="all", next=NOW + timedelta(days=17, hours=19),
             last_fired=ago(days=13), last_error="KeyError: 'tenant_id'\n  at billing.py:91",
             meaning="06:00 on the first day of every month", runs=runs("✓··", timedelta(days=31))),
        task("cleanup", "@reboot", next=None, last_fired=None, watermark=None, armed_at=None),
    ]  # fmt: skip


def slots(name: str) -> list[Slot]:
    def slot(n: int, outcome: str, jobs: int, **values: object) -> Slot:
        at = NOW.replace(minute=15, second=0) - timedelta(minutes=5 * n)
        ids = tuple(uid(100_000 + 10 * n + each) for each in range(jobs))
        base = Slot(name, at, outcome, None, None, 1, ids, 12, at + timedelta(milliseconds=40 + n))
        return replace(base, **values)  # type: ignore[arg-type]

    return [
        slot(0, "fired", 1),
        slot(1, "fired", 3),
        slot(2, "caught-up", 1, decided_at=ago(minutes=6)),
        slot(
            9, "missed", 0, through=NOW.replace(minute=0, second=0), slots=7, reason="older than the last 1 to catch up"
        ),
        slot(10, "skipped", 0, reason="catch_up is none", term=11),
    ]


def task_detail() -> TaskDetail:
    row = tasks()[1]
    assert row.next is not None
    return TaskDetail(row, [row.next + timedelta(minutes=5 * n) for n in range(10)], slots(row.name), leader())


def staged(n: int, state: OutboxState, **values: object) -> OutboxRow:
    base = OutboxRow(
        id=uid(110_000 + n),
        kind=OutboxKind.JOB,
        name="charge_invoice",
        queue="billing",
        tenant_id=f"t{n}",
        state=state,
        attempts=0,
        last_error=None,
        staged_at=ago(seconds=0.4 + n),
        published_at=None,
        set_aside_at=None,
        next_at=None,
        claimed_at=None,
        claimed_by=None,
        held_by=None,
        job_id=None,
    )
    return replace(base, **values)  # type: ignore[arg-type]


def outbox() -> OutboxPage:
    refused = "X_QUEUE_UNKNOWN: no queue is called 'biling'\nTraceback (most recent call last): …"
    gone = {"claimed_by": "relay-1", "claimed_at": ago(seconds=2), "published_at": ago(seconds=2)}
    return OutboxPage(
        [
            staged(0, OutboxState.STAGED),
            staged(1, OutboxState.STAGED, name="send_receipt", queue="mail"),
            staged(2, OutboxState.STAGED, attempts=2, next_at=NOW + timedelta(seconds=8), last_error="refused"),
            staged(3, OutboxState.SET_ASIDE, attempts=10, set_aside_at=ago(minutes=4), last_error=refused,
                   staged_at=ago(minutes=22)),
            staged(4, OutboxState.SET_ASIDE, set_aside_at=ago(minutes=4), held_by=uid(110_003),
                   staged_at=ago(minutes=22)),
            staged(5, OutboxState.PUBLISHED, job_id=uid(1), **gone),
            staged(6, OutboxState.PUBLISHED, job_id=uid(2), tenant_id=None, **gone),
        ],
        None,
    )  # fmt: skip


def depth() -> OutboxDepth:
    return OutboxDepth(Count(12), ago(minutes=12), Count(2))


def health() -> Health:
    stripe = "select id, payload from invoices where customer_id = $1 for update"
    return Health(
        kind="postgres",
        version="16.2",
        schema_version=1,
        connections=91,
        connection_limit=100,
        snapshots=[
            Snapshot(4412, "importer", "idle in transaction", 738_000, "insert into staging select * from feed"),
            Snapshot(5120, "ultijobs-worker", "active", 2_090, "with claimed as (select …"),
        ],
        tables=[
            TableHealth("x_jobs", 61_000, 188_000, ago(minutes=41)),
            TableHealth("x_steps", 214_000, 1_200, ago(minutes=2)),
            TableHealth("x_outbox", 3_100, 0, None),
        ],
        blocked=1,
        listeners=9,
        notify_queue=0.02,
        as_of=NOW,
        waits=[Blocked(5177, "shop-web", 14_200, stripe, (4412,))],
        applications={"shop-web": 60, "ultijobs-worker": 18, "ultijobs-listen": 9, "": 4},
        invalid_indexes=["x_jobs_due_ccnew"],
        clock_skew_ms=1_700,
    )


def backfill(name: str, state: BackfillState, **values: object) -> BackfillRow:
    base = BackfillRow(
        name=name,
        state=state,
        declared=True,
        changed=False,
        queue="maintenance",
        tenant=None,
        batch=1_000,
        rate=5.0,
        requires=None,
        environments=(),
        environment="production",
        checksum="c0ffee",
        run_id=None,
        job_id=None,
        job_state=None,
        forced=False,
        rows=0,
        batches=0,
        sweep=0,
        cursor=None,
        remaining=None,
        rows_per_s=None,
        eta_ms=None,
        started_at=None,
        updated_at=None,
        completed_at=None,
        error_code=None,
        last_error=None,
    )
    return replace(base, **values)  # type: ignore[arg-type]


def backfills() -> list[BackfillRow]:
    dry = "X_BACKFILL_STALLED: the source ran dry while count() still matches 12,400 rows: the two disagree"
    return [
        backfill("drop_legacy", BackfillState.FAILED, rows=87_600, remaining=Count(12_400), batches=88,
                 run_id=uid(120_001), job_id=uid(1), job_state="dead", cursor="8812001", started_at=ago(minutes=36),
                 updated_at=ago(minutes=22), error_code="X_BACKFILL_STALLED", last_error=dry),
        backfill("rewrite_slugs", BackfillState.RUNNING, rows=1_204_000, remaining=Count(796_000, "estimate"),
                 batches=1_204, run_id=uid(120_002), job_id=uid(2), job_state="running", cursor="1204000",
                 rows_per_s=4_980.0, eta_ms=160_000, started_at=ago(minutes=4), updated_at=ago(seconds=1)),
        backfill("recount_totals", BackfillState.RUNNING, rows=12_000, batches=12, run_id=uid(120_003), job_id=uid(3),
                 job_state="ready", cursor='["2026-01-04", 12]', started_at=ago(minutes=9),
                 updated_at=ago(seconds=8), tenant="t42"),
        backfill("fix_phone", BackfillState.FAILED, rows=400, remaining=Count(99_600), batches=1, run_id=uid(120_004),
                 job_id=uid(4), job_state="dead", started_at=ago(hours=2), updated_at=ago(hours=2),
                 error_code="builtins.ValueError", last_error="ValueError: '+49' is no number"),
        backfill("fill_region", BackfillState.PENDING, requires="20260301_region", environments=("production",)),
        backfill("old_sweep", BackfillState.COMPLETED, rows=400_112, remaining=Count(0), batches=401, changed=True,
                 run_id=uid(120_005), job_id=uid(5), job_state="done", started_at=ago(days=2, hours=4),
                 completed_at=ago(days=2), updated_at=ago(days=2)),
        backfill("seed_plans", BackfillState.EXCLUDED, environments=("staging",)),
    ]  # fmt: skip


def forecast(name: str, action: Action) -> Forecast:
    row = next(each for each in backfills() if each.name == name)
    force = action is Action.FORCE_BACKFILL
    done = row.state is BackfillState.COMPLETED
    checks = [
        Condition("the migration 20260301_region is applied", True),
        Condition("no pass of it is live", True),
        Condition("no pass of it has completed", not done or force),
    ]
    refusals = (BackfillApplied(f"backfill {name} has completed"),) if done and not force else ()
    entry = CatalogEntry("backfill", name, row.queue, {})
    left = row.remaining or Count(12_400)
    return Forecast(row, entry, force, left, 13, 2_400, tuple(checks), refusals)
