"""What the cockpit keeps of what it has read: trends, the last quarter of an hour, a recording. Bounded."""

from __future__ import annotations

from ultijobs.inspection import Overview
from ultijobs_tui.history import History
from ultijobs_tui.recording import Recorder, Recording
from ultijobs_tui.travel import Ring, Travel

__all__ = ["Memory"]


class Memory:
    """`past` is a recording that is looked at in place of what is read; `recorder` writes what is read."""

    def __init__(self, past: Recording | None = None, recorder: Recorder | None = None) -> None:
        self.past = past
        self._recorder = recorder
        self._history = History()
        self._ring = Ring()
        self.travel = Travel(self._ring if past is None else past)

    @property
    def history(self) -> History:
        """Where numbers are going; of a moment in the past nothing is known but itself."""
        return History() if self.travel.away else self._history

    def add(self, overview: Overview) -> str | None:
        """Keeps an overview; what there is to tell when the recording has ended."""
        self._history.add(overview)
        taken = self._ring.add(overview)
        return self._recorder.add(overview) if taken and self._recorder is not None else None

    def begin_again(self) -> None:
        """What comes now is of another tenant: it is no sequel of what was."""
        self._history, self._ring = History(), Ring()
        self.travel = Travel(self._ring)
