"""The audit: one job per distribution checks every file that its RECORD lists against the recorded sha256."""

from __future__ import annotations

import base64
import hashlib
from importlib import metadata
from typing import ClassVar, Protocol

from pydantic import BaseModel, Field

from ultijobs import Context, RetryPolicy, Step, UltijobsError, job

__all__ = ["Audit", "DistributionGone", "FileAltered", "FileUnreadable", "Report", "Services", "audit_distribution"]

CHUNK = 64
"""Files hashed by one step: small enough to lose little, large enough to record seldom."""


class Audit(BaseModel):
    """Which distribution to audit, and in which round of audits."""

    distribution: str
    round: int = Field(ge=1)


class Entry(BaseModel):
    """One line of a RECORD that carries a hash."""

    path: str
    sha256: str


class Listing(BaseModel):
    """What a RECORD lists, cut into chunks. `unlisted` counts the lines without a hash, such as RECORD itself."""

    version: str
    chunks: list[list[Entry]]
    unlisted: int


class Tally(BaseModel):
    files: int
    bytes: int


class Report(BaseModel):
    """One row of the application's table."""

    distribution: str
    round: int
    version: str
    files: int
    bytes: int
    unlisted: int


class Services(Protocol):
    """What the audit needs of its process."""

    async def store(self, report: Report) -> None: ...


class FileAltered(UltijobsError):
    """A file does not hash to what its RECORD says. Reading it again would not change that."""

    code: ClassVar[str] = "AUDIT_FILE_ALTERED"
    title: ClassVar[str] = "An installed file is not the one that was installed"
    retry = "terminal"
    default_fix = "reinstall the distribution that the cause names: pip install --force-reinstall NAME"


class FileUnreadable(UltijobsError):
    """A file cannot be read now; a later attempt may."""

    code: ClassVar[str] = "AUDIT_FILE_UNREADABLE"
    title: ClassVar[str] = "An installed file cannot be read"
    retry = "retryable"
    default_fix = "make the file readable for the user of the worker"


class DistributionGone(UltijobsError):
    """The distribution is not installed, or its RECORD is missing."""

    code: ClassVar[str] = "AUDIT_DISTRIBUTION_GONE"
    title: ClassVar[str] = "A distribution to audit is not there"
    retry = "terminal"
    default_fix = "enqueue the audit of a distribution that `pip list` shows"


def read_record(name: str) -> Listing:
    """Parses the RECORD of a distribution."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise DistributionGone(f"{name} is not installed") from None
    files = distribution.files
    if files is None:
        raise DistributionGone(f"{name} has no RECORD")
    entries = [
        Entry(path=str(distribution.locate_file(file)), sha256=file.hash.value)
        for file in files
        if file.hash is not None and file.hash.mode == "sha256"
    ]
    chunks = [entries[start : start + CHUNK] for start in range(0, len(entries), CHUNK)]
    return Listing(version=distribution.version, chunks=chunks, unlisted=len(files) - len(entries))


def hash_files(entries: list[Entry]) -> Tally:
    """Hashes each file and compares it with its entry."""
    size = 0
    for entry in entries:
        try:
            with open(entry.path, "rb") as file:  # noqa: PTH123 - thousands of files: no Path object for each
                digest = hashlib.file_digest(file, "sha256").digest()
                size += file.tell()
        except OSError as error:
            raise FileUnreadable(f"{entry.path}: {error.strerror or error}") from error
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != entry.sha256:
            raise FileAltered(f"{entry.path} does not match its RECORD")
    return Tally(files=len(entries), bytes=size)


@job(
    Audit,
    idempotency_key=lambda audit: f"{audit.distribution}:{audit.round}",
    tenant="none",
    queue="audit",
    retry=RetryPolicy(attempts=5, delay="1s", max_delay="10s"),
    timeout="2m",
    step_timeout="30s",
)
async def audit_distribution(input: Audit, step: Step, ctx: Context[Services]) -> None:
    """Reads the RECORD, hashes the files chunk by chunk, stores one report."""
    listing = await step.run("read", read_record, input.distribution)
    tallies: list[Tally] = []
    for number, chunk in enumerate(listing.chunks, 1):
        tallies.append(await step.run(f"hash {number}", hash_files, chunk))
        ctx.progress(number, len(listing.chunks), input.distribution)
    report = Report(
        distribution=input.distribution,
        round=input.round,
        version=listing.version,
        files=sum(tally.files for tally in tallies),
        bytes=sum(tally.bytes for tally in tallies),
        unlisted=listing.unlisted,
    )
    await step.run("report", ctx.services.store, report)
