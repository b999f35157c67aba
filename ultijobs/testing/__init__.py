"""For the tests of applications: the real execution on a queue in memory, under a clock that the test moves.

A pytest plugin comes along: the fixture `jobs_app`. Nothing here needs a database or a running process.
"""

from ultijobs.testing._clock import FrozenClock
from ultijobs.testing._harness import JobsTestApp
from ultijobs.testing._records import EnqueuedJob, Execution

__all__ = ["EnqueuedJob", "Execution", "FrozenClock", "JobsTestApp"]
