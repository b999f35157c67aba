"""What happens after a failed attempt: the retry policy, and the two errors by which a handler decides itself."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, get_args

from ultijobs._durations import Duration, milliseconds, parse, render
from ultijobs.errors import Invariant, UltijobsError

__all__ = ["Backoff", "RetryAfter", "RetryPolicy", "Terminal"]

Backoff = Literal["fixed", "linear", "exponential"]

MOST_ATTEMPTS: Final = 10_000


@dataclass(frozen=True, slots=True, init=False)
class RetryPolicy:
    """How often a job is tried and how long it waits in between.

    `attempts` counts all tries: 1 means no retry. The wait after failed attempt n is `delay` (fixed), `delay`·n
    (linear) or `delay`·2^(n-1) (exponential), at most `max_delay`; with `jitter` it is drawn from [half, whole] of
    that. When the attempts are used up, or the error is terminal, the job is `dead`, or `failed` with
    `dead_letter=False`; both keep it until retention, neither is ever claimed. Raises `Invariant` or `DurationInvalid`
    for values that make no sense.
    """

    attempts: int
    backoff: Backoff
    delay: timedelta
    max_delay: timedelta
    jitter: bool
    dead_letter: bool

    def __init__(
        self,
        attempts: int = 3,
        backoff: Backoff = "exponential",
        delay: Duration = "1s",
        max_delay: Duration = "1h",
        jitter: bool = True,
        dead_letter: bool = True,
    ) -> None:
        if type(attempts) is not int or not 1 <= attempts <= MOST_ATTEMPTS:
            raise Invariant(
                f"RetryPolicy: attempts is {attempts!r:.100}; it must be a whole number from 1 to {MOST_ATTEMPTS}",
                fix="set attempts= to the number of tries, 1 for no retry",
            )
        if backoff not in get_args(Backoff):
            raise Invariant(f"RetryPolicy: backoff is {backoff!r:.100}", fix='use "fixed", "linear" or "exponential"')
        for field, flag in (("jitter", jitter), ("dead_letter", dead_letter)):
            if type(flag) is not bool:
                raise Invariant(f"RetryPolicy: {field} is {flag!r:.100}", fix=f"set {field}= to True or False")
        put = object.__setattr__
        put(self, "attempts", attempts)
        put(self, "backoff", backoff)
        put(self, "delay", parse(delay, what="RetryPolicy: delay"))
        put(self, "max_delay", parse(max_delay, what="RetryPolicy: max_delay"))
        put(self, "jitter", jitter)
        put(self, "dead_letter", dead_letter)

    def schedule(self) -> list[timedelta]:
        """The waits between the attempts, without jitter: one fewer than `attempts`."""
        return [self._whole(attempt) for attempt in range(1, self.attempts)]

    def delay_for(self, attempt: int) -> timedelta:
        """The wait after failed attempt `attempt`, counted from 1, with jitter when the policy has it."""
        whole = self._whole(attempt)
        if not self.jitter:
            return whole
        most = milliseconds(whole)
        return timedelta(milliseconds=round(random.uniform(most / 2, most)))  # noqa: S311 - spreads load, hides nothing

    def _whole(self, attempt: int) -> timedelta:
        base = milliseconds(self.delay)
        if self.backoff == "linear":
            base *= max(1, attempt)
        elif self.backoff == "exponential":
            # 64 doublings of 1 ms are past every max_delay.
            base <<= min(max(0, attempt - 1), 64)
        return timedelta(milliseconds=min(base, milliseconds(self.max_delay)))


class Terminal(UltijobsError):
    """Raise it in a handler to stop the job at this attempt, whatever the policy allows.

    The cause is a text, or the exception that shows that no further attempt can end otherwise.
    """

    code = "X_TERMINAL"
    title = "The handler stopped the job"
    retry = "terminal"
    default_fix = "fix the cause, then ultijobs jobs retry ID"

    def __init__(
        self, cause: str | BaseException, *, fix: str | None = None, meta: Mapping[str, object] | None = None
    ) -> None:
        said = f"{type(cause).__name__}: {cause}" if isinstance(cause, BaseException) else cause
        super().__init__(said, fix=fix, meta=meta)


class RetryAfter(UltijobsError):
    """Raise it in a handler to be tried again after `delay`, at most the policy's `max_delay`.

    The attempt counts, and the last one still stops the job. The constructor never raises: a delay that cannot be used
    means the policy's own wait.
    """

    code = "X_RETRY_AFTER"
    title = "The handler asked to be tried again later"
    retry = "retry-after"
    default_fix = "nothing to do: the job is tried again by itself"

    def __init__(
        self,
        delay: Duration,
        cause: str | None = None,
        *,
        fix: str | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        try:
            wait: timedelta | None = parse(delay, what="RetryAfter")
        except UltijobsError:
            wait = None
        said = "tried again by the policy" if wait is None else f"tried again after {render(wait)}"
        super().__init__(
            said if cause is None else cause,
            fix=fix,
            meta={**(meta or {}), "retry_after_seconds": None if wait is None else wait.total_seconds()},
        )
        self.delay = wait

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_retry_after, (type(self), self.delay, self.cause, self.fix, self.meta))


def _rebuild_retry_after(
    cls: type[RetryAfter], delay: timedelta, cause: str, fix: str, meta: Mapping[str, object]
) -> RetryAfter:
    return cls(delay, cause, fix=fix, meta=meta)
