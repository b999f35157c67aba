"""What a command answers: data for machines, blocks for people, findings for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ultijobs.errors import CATALOGUE, FilterInvalid, UltijobsError
from ultijobs_cli.exit_codes import ExitCode, exit_code_of

if TYPE_CHECKING:
    from ultijobs_cli.tables import Block

__all__ = ["CommandFailed", "Finding", "Report", "told"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: its code, its cause, the line that fixes it, and where (`at`: an id, a flag)."""

    code: str
    cause: str
    fix: str | None = None
    docs: str | None = None
    at: str | None = None

    @classmethod
    def of(cls, error: UltijobsError, *, at: str | None = None) -> Finding:
        """The error as a finding; where it knows where it is, so does the finding."""
        known = error.meta.get("at")
        if at is None and isinstance(known, str):
            at = known
        if at is None and isinstance(error, FilterInvalid):
            at = f"--where:{error.position}"
        return cls(error.code, error.cause, error.fix, error.docs, at)


def told(code: str, cause: str, fix: str | None, *, at: str | None) -> Finding:
    """A refusal that comes as a code; the class of that code adds its page, and its own line where `fix` is None."""
    known = CATALOGUE.get(code)
    if known is None:
        return Finding(code, cause, fix, at=at)
    return Finding(code, cause, fix or known.default_fix, known.docs, at)


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one command, whole."""

    summary: str
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values of any of the library's types; the renderer gives them their JSON form."""
    blocks: Sequence[Block] = ()
    findings: Sequence[Finding] = ()
    exit_code: ExitCode = ExitCode.DONE
    hints: Sequence[str] = ()
    """Lines for a person on stderr: the next page, what to do now."""
    rows: str | None = None
    """The key of `data` that `--json-lines` prints, one element a line."""
    findings_in_blocks: bool = False
    """The blocks tell the findings whole, so that a person is not told them twice."""
    bare: bool = False
    """`--json` prints `data` alone, without the envelope around it."""

    @property
    def ok(self) -> bool:
        return self.exit_code is ExitCode.DONE


class CommandFailed(Exception):
    """A command that ends with a report which is no error of the library."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.summary)
        self.report = report

    @classmethod
    def because(
        cls, error: UltijobsError, *, exit_code: ExitCode | None = None, at: str | None = None
    ) -> CommandFailed:
        code = exit_code_of(error.code) if exit_code is None else exit_code
        return cls(Report(error.cause, findings=(Finding.of(error, at=at),), exit_code=code))
