"""One driver of the two, and how their answers are laid side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tests.contract.harness import Harness
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.driver import Driver

__all__ = ["Side", "differences"]


class Side:
    """One driver, with names for its lease numbers: each store counts its own."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.claims: list[ClaimedJob] = []
        self._names: dict[int, str] = {0: "none"}

    @property
    def driver(self) -> Driver:
        return self.harness.driver

    def learn(self, claimed: Sequence[ClaimedJob]) -> None:
        self.claims += claimed
        for one in claimed:
            self._names[one.lease_no] = f"claim {one.claims} of {one.id}"

    def plain(self, value: Any) -> Any:
        """The value as both stores would say it."""
        if is_dataclass(value) and not isinstance(value, type):
            told = {each.name: self.plain(getattr(value, each.name)) for each in fields(value)}
            # When a claim went out is a reading of this machine's clock, not of the store's.
            told.pop("sent", None)
            if isinstance(told.get("output"), str):
                # Spaces between the members of an object are each store's own.
                told["output"] = json.loads(told["output"])
            if "lease_no" in told:
                told["lease_no"] = self._names[told["lease_no"]]
            return (type(value).__name__, told)
        if isinstance(value, dict):
            return {key: self.plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(one) for one in value]
        return value


def differences(model: Any, real: Any, path: str = "") -> Iterator[str]:
    """Where two answers part, as lines."""
    if isinstance(model, dict) and isinstance(real, dict) and model.keys() == real.keys():
        for key in model:
            yield from differences(model[key], real[key], f"{path}.{key}")
    elif isinstance(model, list | tuple) and isinstance(real, list | tuple) and len(model) == len(real):
        for at, (one, other) in enumerate(zip(model, real, strict=True)):
            yield from differences(one, other, f"{path}[{at}]")
    elif model != real:
        yield f"{path or 'the answer'}: memory says {model!r}, Postgres {real!r}"
