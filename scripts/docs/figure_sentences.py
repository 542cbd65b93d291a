"""Sentences with figures for the README and the home page.

Tests: tests/docs/test_figures.py
"""

from collections.abc import Callable
from typing import Final

from scripts.docs.figure_blocks import KeptFigures, table


def guarantees(kept: KeptFigures) -> str:
    """Return the guarantees, each with the figure that supports it."""
    worlds = kept["campaign"]
    broken = len(worlds["failing_seeds"])
    repair = worlds["repair_seconds"]
    hurried = worlds["politeness_violations"] + worlds["robots_violations"]
    promises = ", ".join(f"`{judge}`" for judge, count in sorted(worlds["violations"].items()) if count)
    names = f" ({promises})" if promises else ""
    ends = worlds["false_terminations"] + worlds["missed_terminations"]
    return "\n".join(
        (
            f"- **No URL is lost** if any two peers die at once. {worlds['seeds']:,} simulated swarms with "
            f"{worlds['kills']:,} kills found {worlds['urls']:,} URLs and lost {worlds['lost']}.",
            "- **Each page is fetched once**, unless its owner changes in the middle. In these swarms, "
            f"{worlds['duplicate_ratio']:.2%} of the URLs were fetched again.",
            "- **Each site keeps its pace over the whole swarm**, whichever peer owns it. Requests too early, or "
            f"against robots.txt: {hurried}.",
            f"- **The swarm knows when it is done.** Ends too early, or missed: {ends}.",
            f"- **Copies come back by themselves.** All URLs have three copies again {repair['p50']:g} s after a fault "
            f"(median), and {repair['p99']:g} s at the 99th percentile.",
            f"- **The checks are strict.** {len(worlds['violations'])} judges watch each swarm from outside. They "
            f"found a broken promise in {broken} of the {worlds['seeds']:,} swarms{names}.",
        )
    )


def speed(kept: KeptFigures) -> str:
    """Return the README's one table of speed."""
    figures = kept["bench"]
    rows = [
        (
            name,
            f"{cost['cpu_s_per_1000']:.2f}",
            f"{cost['cpu_to_scrapy']:.2f}",
            f"{cost['pages_per_s']:,.0f}",
            f"{cost['peak_mb']:.0f}",
        )
        for name, cost in figures["crawlers"].items()
    ]
    return (
        f"{table(('', 'CPU s per 1,000 pages', 'to Scrapy', 'pages/s', 'peak MB'), rows)}\n\n"
        f"{figures['pages']:,} pages of {len(figures['sites'])} documentation sites on loopback, no delay, medians of "
        f"{figures['runs']} runs side by side on {kept.cores('bench')} shared cores."
    )


def faster_than_scrapy(kept: KeptFigures) -> str:
    """Return the answer to the question whether kadcrawl is faster than Scrapy."""
    crawlers = kept["bench"]["crawlers"]
    two = crawlers["kadcrawl, 2 peers"]
    one = crawlers["kadcrawl, 1 peer"]
    return (
        f"Yes, where the machine is the limit: a peer needs {one['cpu_to_scrapy']:.2f} times the CPU of Scrapy for a "
        f"page, and two peers {two['cpu_to_scrapy']:.2f} times. One peer fetches {one['rate_to_scrapy']:.1f} times as "
        f"many pages per second, and two peers {two['rate_to_scrapy']:.1f} times. Where a site's delay is the limit, "
        "both crawlers are equally fast."
    )


SENTENCES: Final[dict[str, Callable[[KeptFigures], str]]] = {
    "guarantees": guarantees,
    "speed": speed,
    "faster-than-scrapy": faster_than_scrapy,
}
