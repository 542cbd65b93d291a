"""The hooks of a job that this machine cannot import, for `kadcrawl check`.

The hooks are imported as a crawl does it, in a process of their own.

Tests: tests/cli/commands/test_check.py
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from kadcrawl.crawl.content.record_extractor import WorkerExtraction
from kadcrawl.crawl.cookies.login_hook import check_login_hooks
from kadcrawl.errors import StartError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule
from kadcrawl.settings.site_rules import login_hooks

Check = Callable[[], Coroutine[Any, Any, None]]


def missing_hooks(job: Job) -> list[str]:
    """Return a sentence for each hook of this job that cannot be imported here, with what to do."""
    return asyncio.run(_missing(job))


async def _missing(job: Job) -> list[str]:
    limits = limits_with(Limits(), job.shared_limits)
    rules = {rule.hook: rule for rule in job.records if rule.hook}
    if not rules and not login_hooks(job.sites):
        return []
    if rules and await _why(partial(_import, tuple(rules.values()), limits)) is None:
        rules = {}  # The usual case costs one process.
    checks: dict[str, Check] = {hook: partial(_import, (rule,), limits) for hook, rule in rules.items()}
    checks |= {hook: partial(check_login_hooks, [hook], limits) for hook in sorted(login_hooks(job.sites))}
    return [f"hook {hook}: {why}" for hook, check in checks.items() if (why := await _why(check)) is not None]


async def _why(check: Check) -> str | None:
    try:
        await check()
    except StartError as error:
        return str(error)
    return None


async def _import(rules: tuple[RecordRule, ...], limits: Limits) -> None:
    extraction = WorkerExtraction(rules, limits)
    try:
        await extraction.start()
    finally:
        await extraction.close()
