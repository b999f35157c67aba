"""The audit: one job per distribution checks every file that its RECORD lists against the recorded sha256."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import metadata
from typing import ClassVar, NamedTuple, Protocol

from pydantic import BaseModel, Field

from ultijobs import Context, RetryPolicy, Step, UltijobsError, job

__all__ = [
    "Audit",
    "DistributionGone",
    "FileAltered",
    "FileUnreadable",
    "Report",
    "Services",
    "audit_distribution",
    "installed",
]

CHUNK = 64
"""Files hashed by one step: small enough to lose little, large enough to record seldom."""


class Audit(BaseModel):
    """Which distribution to audit, and in which round of how many audits."""

    distribution: str
    round: int = Field(ge=1)
    of: int = Field(default=0, ge=0)


class Listing(BaseModel):
    """How long a RECORD is. `unlisted` counts its lines without a hash, such as RECORD itself."""

    version: str
    chunks: int
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

    async def store(self, report: Report, of: int) -> None: ...


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


class Record(NamedTuple):
    """A parsed RECORD: path and sha256 of each file that it hashes, and the number of its other lines."""

    version: str
    files: tuple[tuple[str, str], ...]
    unlisted: int


def installed() -> dict[str, str]:
    """The distributions of this environment that have a RECORD, by name, with their versions."""
    there = {d.metadata["Name"].lower(): d for d in metadata.distributions() if d.files is not None}
    return {there[key].metadata["Name"]: there[key].version for key in sorted(there)}


@lru_cache(maxsize=16)
def parse_record(name: str) -> Record:
    """The RECORD of an installed distribution. Raises `DistributionGone`."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise DistributionGone(f"{name} is not installed") from None
    listed = distribution.files
    if listed is None:
        raise DistributionGone(f"{name} has no RECORD")
    files = tuple(
        (str(distribution.locate_file(file)), file.hash.value)
        for file in listed
        if file.hash is not None and file.hash.mode == "sha256"
    )
    return Record(distribution.version, files, len(listed) - len(files))


def read_record(name: str) -> Listing:
    """Says how much there is to hash."""
    record = parse_record(name)
    return Listing(version=record.version, chunks=-(-len(record.files) // CHUNK), unlisted=record.unlisted)


def hash_chunk(name: str, version: str, number: int) -> Tally:
    """Hashes the files of one chunk, counted from 1, and compares each with its line of the RECORD."""
    record = parse_record(name)
    if record.version != version:
        raise DistributionGone(f"{name} {version} was replaced by {record.version} during its audit")
    files = record.files[(number - 1) * CHUNK : number * CHUNK]
    size = 0
    for path, sha256 in files:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - thousands of files: no Path object for each
                digest = hashlib.file_digest(file, "sha256").digest()
                size += file.tell()
        except OSError as error:
            raise FileUnreadable(f"{path}: {error.strerror or error}") from error
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != sha256:
            raise FileAltered(f"{path} does not match its RECORD")
    return Tally(files=len(files), bytes=size)


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
    for number in range(1, listing.chunks + 1):
        tallies.append(await step.run(f"hash {number}", hash_chunk, input.distribution, listing.version, number))
        ctx.progress(number, listing.chunks, input.distribution)
    report = Report(
        distribution=input.distribution,
        round=input.round,
        version=listing.version,
        files=sum(tally.files for tally in tallies),
        bytes=sum(tally.bytes for tally in tallies),
        unlisted=listing.unlisted,
    )
    await step.run("report", ctx.services.store, report, input.of)
