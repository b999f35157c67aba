"""Checked, never run: each driver is one, as far as types can tell."""

from ultijobs._queue.driver import Driver, InspectionStore, LeaseLink
from ultijobs._queue.events import EventStore
from ultijobs.memory import MemoryDriver
from ultijobs.postgres import PostgresDriver

memory = MemoryDriver()
memory_driver: Driver = memory
memory_reads: InspectionStore = memory.inspect
memory_events: EventStore = memory.events
memory_link: LeaseLink = memory.lease_link()

postgres = PostgresDriver("postgresql://localhost/app")
postgres_driver: Driver = postgres
postgres_reads: InspectionStore = postgres.inspect
postgres_events: EventStore = postgres.events
postgres_link: LeaseLink = postgres.lease_link()
