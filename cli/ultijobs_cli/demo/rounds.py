"""Gives the workers something to do: a round audits every distribution that is installed; incidents are extra."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from ultijobs import App
from ultijobs_cli.demo import incidents
from ultijobs_cli.demo.beginning import begin

__all__ = ["Ledger", "enqueue_incidents", "enqueue_round"]


@dataclass
class Ledger:
    """What the queue has acknowledged."""

    ids: list[UUID] = field(default_factory=list[UUID])
    rounds: int = 0


async def enqueue_round(app: App[None], url: str, ledger: Ledger, names: list[str], first: int) -> list[UUID]:
    """Enqueues the jobs of one round; the ids are acknowledged when this returns."""
    ids = [answer.id for answer in await begin(app, url, first + ledger.rounds, names)]
    ledger.rounds += 1
    ledger.ids += ids
    return ids


async def enqueue_incidents(app: App[None], ledger: Ledger) -> None:
    """Enqueues each kind of failure; what still lives from an earlier demo is deduped to it."""
    tickets = [incidents.Ticket(number=number) for number in range(1, 13)]
    ledger.ids += [answer.id for answer in await app.enqueue_many(incidents.fetch_index, tickets)]
    documents = [incidents.Document(number=number, body='{"title": "unfinished') for number in range(1, 6)]
    ledger.ids += [answer.id for answer in await app.enqueue_many(incidents.import_document, documents)]
    ledger.ids += [answer.id for answer in await app.enqueue_many(incidents.mirror_release, tickets)]
    for handle in (incidents.load_plugin, incidents.export_catalogue, incidents.send_reminder):
        ledger.ids.append((await app.enqueue(handle, incidents.Ticket(number=1))).id)
