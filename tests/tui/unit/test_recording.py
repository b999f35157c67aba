"""Recordings: bounded, readable by their owner, whole again when read, and refused by name when they are none."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.tui import data
from ultijobs.errors import Invariant
from ultijobs_tui import recording
from ultijobs_tui.recording import Recorder, Recording, decode, encode


def seconds(n: int):
    return replace(data.overview(), as_of=data.NOW + timedelta(seconds=n))


def recorded(path, count: int = 3) -> None:
    recorder = Recorder(path, "db-eu-1/shop")
    for n in range(count):
        assert recorder.add(seconds(n)) is None
    recorder.close()


def test_an_overview_is_whole_again_after_its_text() -> None:
    assert decode(encode(data.overview())) == data.overview()


def test_a_recording_is_read_back_moment_by_moment(tmp_path) -> None:
    recorded(tmp_path / "r")
    past = Recording(tmp_path / "r")
    assert (past.title, len(past)) == ("db-eu-1/shop", 3)
    assert [past.at(n) for n in range(3)] == [seconds(n).as_of for n in range(3)]
    assert past.read(2) == seconds(2)
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o600


def test_a_recording_never_writes_over_a_file(tmp_path) -> None:
    (tmp_path / "r").write_text("mine", encoding="utf-8")
    with pytest.raises(Invariant, match="File exists"):
        Recorder(tmp_path / "r", "db")
    assert (tmp_path / "r").read_text(encoding="utf-8") == "mine"


def test_a_recording_ends_at_its_bound_and_says_so_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(recording, "_MOST_BYTES", 3 * len(encode(data.overview())) + 500)
    recorder = Recorder(tmp_path / "r", "db")
    said = [recorder.add(seconds(n)) for n in range(9)]
    assert len([text for text in said if text]) == 1
    assert "recording ended" in next(text for text in said if text)
    assert 1 <= len(Recording(tmp_path / "r")) <= 3


def test_what_was_cut_while_it_was_written_is_left_out(tmp_path) -> None:
    recorded(tmp_path / "r")
    whole = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(whole[:-40])
    assert len(Recording(tmp_path / "r")) == 2


HEAD = json.dumps({"ultijobs": "recording", "format": 1, "release": "0.1.0", "title": "db"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a recording"),
        (b"\x00\xff\xfe" * 100, "is not a recording"),
        (b"[" * 100_000, "is not a recording"),
        (b'{"ultijobs": "recording", "format": 9, "release": "9.0"}\n', "format 9, made by release '9.0'"),
        (HEAD.encode() + b"\n", "holds no moment"),
        (HEAD.encode() + b'\n{"at": "today", "overview": {}}\n', "has no moment on line 2"),
        (HEAD.encode() + b'\n{"at": "2026-99-14T14:16:03+00:00", "overview": {}}\n', "has no moment on line 2"),
        (HEAD.encode() + b"\n\x1b[2J\n", "has no moment on line 2"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_by_its_fault(tmp_path, content: bytes, said: str) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(Invariant) as refused:
        Recording(tmp_path / "r")
    assert said in refused.value.cause
    assert refused.value.fix


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path, monkeypatch) -> None:
    with pytest.raises(Invariant, match="No such file"):
        Recording(tmp_path / "nothing")
    recorded(tmp_path / "r")
    monkeypatch.setattr(recording, "_MOST_BYTES", 1000)
    for endless in (tmp_path / "r", Path("/dev/zero")):
        with pytest.raises(Invariant, match="a recording ends at 1,000"):
            Recording(endless)


def test_a_damaged_moment_is_an_error_of_that_moment_alone(tmp_path) -> None:
    recorded(tmp_path / "r", 2)
    text = (tmp_path / "r").read_text(encoding="utf-8").replace('"severity": 2', '"severity": "[/red]"', 1)
    (tmp_path / "r").write_text(text, encoding="utf-8")
    past = Recording(tmp_path / "r")
    with pytest.raises(ValueError, match="severity"):
        past.read(0)
    assert past.read(1) == seconds(1)
