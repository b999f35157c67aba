"""The only writer of stdout: one report, as text or as JSON. What only a person needs goes to stderr."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TextIO, cast

from ultijobs.inspection import inert
from ultijobs_cli.jsonform import dump
from ultijobs_cli.report import Finding, Report
from ultijobs_cli.tables import Block, Paragraph, Tone

_SHOWN: Final = 5
"""Findings that a person is shown; beyond them a count says more."""

__all__ = ["ReaderLeft", "Screen", "masked", "prepare_streams"]

_PASSWORD: Final = re.compile(r"(://[^:/?#\s]*:)[^\s]*(@)|(password=)[^\s&]+", re.IGNORECASE)


def masked(text: str) -> str:
    """`text` without the password of any address in it."""
    return _PASSWORD.sub(lambda found: f"{found[1] or found[3]}***{found[2] or ''}", text)


def prepare_streams() -> None:
    """A terminal that lacks a character gets an escape in its place, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class ReaderLeft(Exception):
    """Whoever reads stdout has closed it, as `| head` does once it has enough. No failure of the command."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Where the answers of one command go."""

    json: bool = False
    json_lines: bool = False

    def show(self, command: str, report: Report) -> None:
        """Prints the report: its data on stdout, findings and hints on stderr."""
        with suppress(ReaderLeft):
            self._data(command, report)
        shown = report.findings_in_blocks and not (self.json or self.json_lines)
        self.aside(_aside(report, told=self.json, findings=() if shown else report.findings))

    def _data(self, command: str, report: Report) -> None:
        if self.json_lines:
            self._rows(report)
        elif self.json:
            self.object(report.data if report.bare else _envelope(command, report))
        else:
            self.text(report.blocks)

    def text(self, blocks: Sequence[Block]) -> None:
        """Blocks on stdout."""
        if blocks:
            with _noticing_who_left():
                _paint(sys.stdout, blocks)

    def again(self, report: Report) -> None:
        """The report once more, in place of the one before where stdout is a terminal. Raises `ReaderLeft`."""
        if self.json_lines:
            self._rows(report)
            return
        if sys.stdout.isatty():
            sys.stdout.write("\x1b[H\x1b[2J")
        self.text(report.blocks)

    def object(self, value: Mapping[str, object]) -> None:
        """One JSON object on stdout."""
        self.plain(dump(value))

    def plain(self, text: str) -> None:
        """One line of our own on stdout, as it is."""
        with _noticing_who_left():
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def aside(self, lines: Sequence[Paragraph]) -> None:
        """Lines on stderr, for the person at the terminal."""
        for line in lines:
            _paint(sys.stderr, [line])

    def blocks_aside(self, blocks: Sequence[Block]) -> None:
        """Blocks on stderr, such as a plan before a question."""
        _paint(sys.stderr, blocks)

    def note(self, text: str, tone: Tone = "") -> None:
        """One line on stderr."""
        self.aside([Paragraph(masked(text), tone)])

    def progress(self, text: str) -> None:
        """Replaces the line of progress on stderr; silent where that is no terminal. Empty text takes it away."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{inert(text, line=True)}")
            sys.stderr.flush()

    def _rows(self, report: Report) -> None:
        if report.rows is None:
            if report.data:
                self.object(report.data)
            return
        rows = cast("Iterable[object]", report.data.get(report.rows, ()))
        text = "".join(f"{dump(row)}\n" for row in rows)
        with _noticing_who_left():
            sys.stdout.write(text)
            sys.stdout.flush()


@contextmanager
def _noticing_who_left() -> Generator[None]:
    """Raises `ReaderLeft`; after it stdout goes nowhere, the interpreter's last flush included."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ReaderLeft from None


def _aside(report: Report, *, told: bool, findings: Sequence[Finding]) -> list[Paragraph]:
    found = [line for finding in findings[:_SHOWN] for line in _three_lines(finding)]
    if len(findings) > _SHOWN:
        found.append(Paragraph(f"and {len(findings) - _SHOWN:,} more; --json lists them all"))
    if not report.ok and not found:
        found.append(Paragraph(masked(report.summary), "red"))
    elif told and report.ok:
        found.append(Paragraph(masked(report.summary), "dim"))
    return [*found, *(Paragraph(masked(hint), "dim") for hint in report.hints)]


def _three_lines(finding: Finding) -> list[Paragraph]:
    where = (
        f" ({finding.at})" if finding.at and not finding.at.startswith("--") and finding.at not in finding.cause else ""
    )
    lines = [Paragraph(masked(f"{finding.code}: {' '.join(finding.cause.split())}{where}"), "red")]
    if finding.fix:
        lines.append(Paragraph(masked(f"fix: {' '.join(finding.fix.split())}")))
    if finding.docs:
        lines.append(Paragraph(f"docs: {finding.docs}", "dim"))
    return lines


def _envelope(command: str, report: Report) -> dict[str, object]:
    return {
        "ok": report.ok,
        "command": command,
        "summary": masked(report.summary),
        "findings": [
            {
                "code": finding.code,
                "cause": masked(finding.cause),
                "fix": None if finding.fix is None else masked(finding.fix),
                "docs": finding.docs,
                "at": None if finding.at is None else masked(finding.at),
            }
            for finding in report.findings
        ],
        "data": report.data,
    }


def _paint(stream: TextIO, blocks: Sequence[Block]) -> None:
    from ultijobs_cli.paint import paint  # noqa: PLC0415 - rich costs a tenth of a second that JSON need not wait for

    paint(stream, blocks)
    stream.flush()
