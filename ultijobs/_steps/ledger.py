"""What a run has recorded, and what this attempt has asked for: replay, duplicates, changed code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ultijobs._queue.steps import StepKind, StepRecord, StepStatus
from ultijobs.errors import JobRowStatusUnknown, RunCodeChanged, StepDuplicate

__all__ = ["Ledger"]

_KINDS: Final = frozenset(StepKind)
_STATUSES: Final = frozenset(StepStatus)


class Ledger:
    """The records of one run, loaded once, and the names asked for in this attempt.

    Raises `JobRowStatusUnknown` when a record speaks of something that this release does not know.
    """

    __slots__ = ("_asked", "_position", "_records", "replayed")

    def __init__(self, records: Sequence[StepRecord] = ()) -> None:
        for record in records:
            if record.status not in _STATUSES or record.kind not in _KINDS:
                raise JobRowStatusUnknown(
                    f"x_job_steps has step {record.name!r} of run {record.run_id} with "
                    f"status {record.status!r} and kind {record.kind!r}, which this release does not know",
                    meta={"step": record.name, "status": record.status, "kind": record.kind},
                )
        self._records = {record.name: record for record in records}
        self._asked: dict[str, None] = {}
        self.replayed: list[str] = []
        """The names that this attempt took from storage, in their order."""
        self._position = max((record.position for record in records), default=0)

    def ask(self, name: str, kind: StepKind) -> StepRecord | None:
        """The record of `name`, if any.

        Raises `StepDuplicate` for a name's second use in this attempt, `RunCodeChanged` when it is another kind's.
        """
        if name in self._asked:
            raise StepDuplicate(f"the step {name!r} is used twice in one attempt", meta={"step": name})
        self._asked[name] = None
        record = self._records.get(name)
        if record is not None and record.kind != kind:
            raise RunCodeChanged(
                f"the step {name!r} is recorded as a {record.kind}, and the code now asks for it as a {kind.value}",
                meta={"step": name},
            )
        if record is not None and record.status == StepStatus.COMPLETED:
            self.replayed.append(name)
        return record

    @property
    def executed(self) -> tuple[str, ...]:
        """The names that this attempt asked for and did not find completed, in their order."""
        replayed = frozenset(self.replayed)
        return tuple(name for name in self._asked if name not in replayed)

    def place(self, record: StepRecord | None) -> int:
        """Where the step stands in the run: first come, first placed; a recorded step keeps its place."""
        if record is not None:
            return record.position
        self._position += 1
        return self._position

    def refuse_forgotten(self) -> None:
        """Raises `RunCodeChanged` when a step was recorded and this attempt did not ask for it.

        One that failed leaves nothing behind that could be missed.
        """
        forgotten = [
            record
            for record in self._records.values()
            if record.name not in self._asked and record.status != StepStatus.FAILED
        ]
        if forgotten:
            first = min(forgotten, key=lambda record: record.position)
            more = f" and {len(forgotten) - 1} more" if len(forgotten) > 1 else ""
            raise RunCodeChanged(
                f"the handler returned without asking for the recorded step {first.name!r}{more}",
                meta={"steps": sorted(record.name for record in forgotten)},
            )
