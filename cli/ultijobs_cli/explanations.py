"""The long form of each error: when it is met, and what to do. The texts are in `explanations.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from ultijobs._retry import RetryAfter, Terminal
from ultijobs.errors import CATALOGUE, Retry, UltijobsError
from ultijobs.inspection import CHECKS, Check

__all__ = ["CODES", "Explanation", "explanation"]

_KINDS: Final[list[type[UltijobsError] | Check]] = [*CATALOGUE.values(), RetryAfter, Terminal, *CHECKS]
CODES: Final = {kind.code: kind for kind in sorted(_KINDS, key=lambda kind: kind.code)}
"""Every code of the library, in order: its errors, and what `ultijobs doctor` finds."""
_DOCTOR: Final = "ultijobs doctor"

_RETRY: Final[dict[Retry | None, str]] = {
    "terminal": "stops the job at once: a retry would end the same way",
    "retryable": "is retried by the job's policy",
    "retry-after": "is retried after the delay that it carries",
    None: "is retried by the job's policy, as any exception",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to say about a code beyond its title."""

    when: str
    what_to_do: str
    fix: str
    """The line that comes with it, where the cause gives no better one."""
    retry: str | None
    """What a worker does when a handler raises it; None for what doctor finds, which nobody raises."""


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("ultijobs_cli") / "explanations.toml").read_text(encoding="utf-8"))


def explanation(kind: type[UltijobsError] | Check) -> Explanation:
    """The long form of `kind`; an application's own class is explained by its docstring."""
    text = _texts().get(kind.code, {})
    if isinstance(kind, Check):
        return Explanation(text.get("when") or kind.title, text.get("do") or _DOCTOR, _DOCTOR, None)
    return Explanation(
        when=text.get("when") or (kind.__doc__ or kind.title).strip(),
        what_to_do=text.get("do") or kind.default_fix,
        fix=kind.default_fix,
        retry=_RETRY[kind.retry],
    )
