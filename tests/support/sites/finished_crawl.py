"""A finished run of the command, and the type of the fixture that runs the command."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from scripts.kadcrawl_run import LoggedPage


class Crawl(NamedTuple):
    """The output of a finished run of `kadcrawl crawl`."""

    lines: list[LoggedPage]
    summary: dict[str, Any]


CrawlToTheEnd = Callable[[Sequence[str], int], Crawl]
