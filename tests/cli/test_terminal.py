"""The cockpit draws on a terminal, and on nothing else."""

from __future__ import annotations

import io
import sys

import pytest

from ultijobs.errors import CliBadFlag
from ultijobs_cli.options import need_terminal


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_a_file_is_refused_with_the_way_out(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.StringIO() if name == stream else Terminal())
    with pytest.raises(CliBadFlag) as refused:
        need_terminal("ultijobs tui --once")
    assert refused.value.fix == "ultijobs tui --once"


def test_three_terminals_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal())
    need_terminal("ultijobs tui --once")
