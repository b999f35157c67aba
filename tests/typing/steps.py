# pyright: strict, reportUnnecessaryTypeIgnoreComment=true, reportUnusedFunction=false
"""Checked, never run: what a handler sees, with its types; each ignored line is a wrong use that must stay an error."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from pydantic import BaseModel, TypeAdapter

from ultijobs import Context, Event, Step, SyncStep, current


class Org(BaseModel):
    id: str


@dataclass
class Services:
    region: str


async def provision(org_id: str, *, region: str = "eu") -> Org:
    return Org(id=f"{org_id} in {region}")


def count(org: Org) -> int:
    return len(org.id)


async def nothing() -> None:
    return


async def on_the_loop(step: Step, ctx: Context[Services]) -> None:
    org = await step.run("provision", provision, "o-1", region="us")
    assert_type(org, Org)
    assert_type(await step.run("count", count, org), int)
    assert_type(await step.run("nothing", nothing), None)
    assert_type(await step.returning(Org).run("given", lambda: {"id": "x"}), Org)
    assert_type(await step.returning(TypeAdapter(list[int])).run("adapter", lambda: [1]), list[int])
    assert_type(await step.with_timeout("30s").run("count again", count, org), int)
    assert_type(await step.returning(Org).with_timeout(5).run("both", provision, "x"), Org)

    await step.sleep("3d")
    await step.sleep("nap", timedelta(days=3))
    await step.sleep(1.5)

    assert_type(await step.wait_for_event("a", "org.approved"), Event[Any] | None)
    assert_type(await step.wait_for_event("b", "org.approved", required=True), Event[Any])
    assert_type(await step.wait_for_event("c", "org.approved", payload=Org), Event[Org] | None)
    event = await step.wait_for_event(
        "d", "org.approved", payload=TypeAdapter(Org), match="o-1", timeout="7d", required=True, since="now"
    )
    assert_type(event, Event[Org])
    assert_type(event.payload, Org)

    assert_type(ctx.services, Services)
    assert_type(ctx.services.region, str)
    assert_type(ctx.attempt, int)
    assert_type(ctx.tenant, str | None)
    assert_type(current().step.key, str)
    assert_type(ctx.signal.is_set(), bool)
    ctx.progress(1, 10, "half way")
    ctx.log.info("a line with the ids of the job")

    await step.run("missing argument", provision)  # type: ignore[call-overload]
    await step.run("wrong argument", provision, 1)  # type: ignore[call-overload]
    await step.run("unknown keyword", count, org, region="eu")  # type: ignore[arg-type, call-arg]
    await step.run(provision, "o-1")  # type: ignore[call-overload]
    await step.sleep("nap", "1h", "more")  # type: ignore[call-overload]
    await step.sleep(None)  # type: ignore[call-overload]
    await step.wait_for_event("e", "org.approved", since="ever")  # type: ignore[call-overload]
    ctx.services.nowhere  # type: ignore[attr-defined]  # noqa: B018


def in_a_thread(step: SyncStep, ctx: Context[None]) -> None:
    org = step.run("provision", provision, "o-1")
    assert_type(org, Org)
    assert_type(step.run("count", count, org), int)
    assert_type(step.returning(Org).run("given", lambda: {"id": "x"}), Org)
    assert_type(step.returning(Org).with_timeout(5).run("both", provision, "x"), Org)
    step.with_timeout("30s").sleep("nap", "1h")
    step.sleep("1h")
    assert_type(step.wait_for_event("a", "org.approved"), Event[Any] | None)
    assert_type(step.wait_for_event("b", "org.approved", payload=Org, required=True), Event[Org])
    assert_type(ctx.services, None)

    step.run("missing argument", provision)  # type: ignore[call-overload]
    step.sleep("nap", "1h", "more")  # type: ignore[call-overload]
