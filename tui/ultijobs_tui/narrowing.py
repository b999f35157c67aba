"""Narrows every screen to one tenant; a name that nothing is known under is asked about first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ultijobs.inspection import Where
from ultijobs_tui.screens.ask import AskDialog
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.strangers import strangers
from ultijobs_tui.table import Tone

if TYPE_CHECKING:
    from ultijobs_tui.app import Cockpit

__all__ = ["narrow_by_key", "narrow_to", "tell_if_unknown"]

_TITLE: Final = "TENANT for every screen"


def narrow_by_key(app: Cockpit) -> None:
    """To the tenant under the cursor, else to one that is asked for; a second time to all."""
    here = app.screen.tenant_here() if isinstance(app.screen, CockpitScreen) else None
    if app.tenant is not None:
        app.narrow(None)
    elif here is not None:
        app.narrow(here)
    else:
        _ask(app, "no tenant is under the cursor: name one")


def narrow_to(app: Cockpit, name: str) -> None:
    """To a tenant that was typed. One that is not known is asked about: typed twice it is meant."""
    app.run_worker(_narrow(app, name), exit_on_error=False)


async def tell_if_unknown(app: Cockpit) -> None:
    """Says so when the cockpit was started for a tenant that is not known."""
    name = app.tenant
    if name is not None and (said := await _unknown(app, name)):
        app.say(f"{said}: t shows all tenants", Tone.WARN)


async def _narrow(app: Cockpit, name: str) -> None:
    said = await _unknown(app, name)
    if said:
        _ask(app, "enter takes it all the same", name, said)
    else:
        app.narrow(name)


def _ask(app: Cockpit, told: str, before: str = "", doubt: str = "") -> None:
    def answered(answer: str | None) -> None:
        if answer is None:
            return
        if answer == before:
            app.narrow(answer)
        else:
            narrow_to(app, answer)

    app.push_screen(AskDialog(_TITLE, "tenant", told, value=before, doubt=doubt), answered)


async def _unknown(app: Cockpit, name: str) -> str:
    """What to say of a tenant that nothing is known under; nothing where that cannot be found out."""
    return "".join((await strangers(app.source, Where((), name)))[:1])
