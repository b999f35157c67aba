"""The driver in memory, for unit tests of applications: the same contract as Postgres, under a clock of the test's."""

from ultijobs.memory._driver import MemoryDriver

__all__ = ["MemoryDriver"]
