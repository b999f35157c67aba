"""Checked, never run: each driver is one, as far as types can tell."""

from ultijobs._queue.driver import Driver, InspectionStore, LeaseLink
from ultijobs.memory import MemoryDriver

memory = MemoryDriver()
memory_driver: Driver = memory
memory_reads: InspectionStore = memory.inspect
memory_link: LeaseLink = memory.lease_link()
