"""The page of odd servers: the table of scripts/odd_servers, with the outcomes that were measured of other clients.

Tests: tests/docs/test_generated_pages.py, tests/scripts/test_odd_servers.py
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from scripts.docs.markdown import page, table
from scripts.odd_servers.behaviors import Behavior, Topic
from scripts.odd_servers.table import BEHAVIORS, TOPICS

PAGE: Final = "docs/explanation/odd-servers.md"
KEPT: Final = "docs/explanation/odd-servers.json"


class _Outcomes(msgspec.Struct):
    """The outcomes of other clients for one behavior."""

    curl: str
    scrapy: str


class MeasuredOutcomes(msgspec.Struct):
    """The file with the outcomes of other clients."""

    date: str
    curl: str
    scrapy: str
    outcomes: dict[str, _Outcomes]
    """The outcomes by the key of a behavior."""


def key_of(topic: Topic, behavior: Behavior) -> str:
    """Return the key of a behavior in the file."""
    return f"{topic.name}: {behavior.does}"


def generate(root: Path) -> Mapping[str, str]:
    """Return the page."""
    measured = msgspec.json.decode((root / KEPT).read_bytes(), type=MeasuredOutcomes)
    parts = [_about(measured)]
    for topic in TOPICS:
        parts += [f"## {topic.title}", topic.text, _table(topic, measured)]
    return {PAGE: page("Odd servers", "scripts/odd_servers", *parts)}


def _about(measured: MeasuredOutcomes) -> str:
    return (
        f"{len(BEHAVIORS)} behaviors of web servers that are unusual or broken, with the outcome for kadcrawl, two "
        "other clients, and browsers:\n\n"
        "- **kadcrawl**: a test compares this column with kadcrawl itself. `fails` names the reason in `pages.jsonl`. "
        "The times of the test are short.\n"
        f"- **curl {measured.curl} and Scrapy {measured.scrapy}**: measured by `python -m scripts.odd_servers` on "
        f"{measured.date}. curl has the option `--compressed`, and Scrapy its usual settings without retries. `waits` "
        "means three seconds without an end.\n"
        "- **browser**: not measured, but read in the standards of the WHATWG (Fetch, HTML, MIME Sniffing, URL) and "
        "the RFCs of HTTP. A dash means that no standard says it."
    )


def _table(topic: Topic, measured: MeasuredOutcomes) -> str:
    rows = []
    for behavior in topic.behaviors:
        others = measured.outcomes[key_of(topic, behavior)]
        rows.append([behavior.does, behavior.kadcrawl, others.curl, others.scrapy, behavior.browser or "-"])
    return table(["the server sends", "kadcrawl", "curl", "Scrapy", "browser, by the standards"], rows)
