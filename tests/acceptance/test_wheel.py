"""What the acceptance tests run on."""

from __future__ import annotations

import os
from pathlib import Path

import ultijobs
import ultijobs_cli
import ultijobs_tui


def test_on_the_wheel_the_packages_come_from_it_and_not_from_the_checkout() -> None:
    checkout = Path(__file__).parents[2]
    inside = [
        Path(module.__file__ or "").is_relative_to(checkout / "build")
        for module in (ultijobs, ultijobs_cli, ultijobs_tui)
    ]
    on_the_wheel = "ULTIJOBS_TEST_WHEEL" in os.environ
    assert inside == [on_the_wheel] * 3
