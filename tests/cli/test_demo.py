"""What the demo says at its end."""

from __future__ import annotations

from ultijobs._queue.records import JobState
from ultijobs_cli.commands.demo import told


def test_states_that_do_not_occur_are_left_out_and_invariants_never_are() -> None:
    states = {state.value: 0 for state in JobState}
    assert told(states) == "none"
    assert told(states | {"done": 1_660, "dead": 18}) == "done 1,660  dead 18"
    assert told({"lost": 0, "running_without_worker": 0}) == "lost 0  running_without_worker 0"
