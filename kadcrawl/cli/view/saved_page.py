"""`kadcrawl check --page` prints the records that a job takes out of a saved page, in a real worker process.

Tests: tests/cli/test_command_records.py
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_extractor import ExtractedRecords, WorkerExtraction
from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import PageRules
from kadcrawl.system.printable import printable, printable_json
from kadcrawl.urls import seed


def records_of(job: Job, urls: Sequence[str], path: Path) -> Iterator[str]:
    """Yield the records of the page in this file, each as JSON that steers no terminal.

    Raises ConfigError unless there is one URL, a rule for it, and records can be taken out of the page.
    """
    if len(urls) != 1:
        raise ConfigError("--page goes with one URL, of which it is the page")
    rules, url = PageRules(job.roles, job.records), seed(urls[0])
    number, role = rules.record(url), rules.role(url)
    if number is None:
        raise ConfigError(f"no pattern of a [[records]] table is found in {url}")
    try:
        content = path.read_bytes()
        saved_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    page = Page(
        url=url,
        status=200,
        failure=None,
        headers={"content-type": "text/html"},
        content=content,
        content_type="text/html",
        depth=1,
        links=(),
        fetched_at=saved_at.isoformat(),
        role=None if role is None else role.role,
    )
    found = asyncio.run(_extracted(job, number, page))
    if found.error is not None:
        raise ConfigError(f"no records by rule {job.records[number].label}: {printable(found.error)}")
    yield from (printable_json(bytes(record).decode()) for record in found.records)
    if not found.records:
        yield f"The page has no records by rule {job.records[number].label}."


async def _extracted(job: Job, number: int, page: Page) -> ExtractedRecords:
    extraction = WorkerExtraction(job.records, limits_with(Limits(), job.shared_limits))
    try:
        await extraction.start()
        return await extraction.extract(number, page)
    finally:
        await extraction.close()
