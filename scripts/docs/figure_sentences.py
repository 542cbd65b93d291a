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
            f"{cost['steady_to_bare_loop']:.2f}",
            f"{cost['pages_per_s']:,.0f}",
            f"{cost['peak_mb']:.0f}",
        )
        for name, cost in figures["crawlers"].items()
    ]
    runs = "one run of each," if figures["runs"] == 1 else f"medians of {figures['runs']} runs,"
    return (
        f"{table(('', 'CPU s per 1,000 pages', 'to Scrapy', 'to the bare loop', 'pages/s', 'peak MB'), rows)}\n\n"
        f"{figures['pages']:,} pages of {len(figures['sites'])} documentation sites on loopback, no delay, {runs} "
        f"side by side on {kept.cores('bench')} shared cores."
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


def papers_side_by_side(kept: KeptFigures) -> str:
    """Return the README's table of the papers' experiments: their numbers beside ours."""
    results = kept["papers"]

    def ours(experiment: str, what: str, column: str = "ours") -> float:
        [value] = [found[column] for found in results[experiment]["findings"] if found["what"] == what]
        return float(value)

    def share(what: str) -> str:
        return f"{ours('messages', what):.2f}"

    gain, seconds = "drain: more pages with lending, 1 h (%)", "BP + exact, cold: makespan, s"
    theirs_gain = ours("table2", "level: more pages with lending, 1 h (%)", "theirs")
    theirs_s = ours("powers", "BP + swarm, cold: makespan, s", "theirs")
    needless = "URLs of others that move when one of 100 leaves, %: "
    early = "posts fetched again within three days"
    bytes_, redis = (
        "bytes of a URL in the filters of a running peer",
        "one copy in a Redis set, times as much as a peer's filters",
    )
    rows = [
        ("P1: more pages of eight unlike peers by lending", f"{theirs_gain:+.1f} %", f"{ours('table2', gain):+.1f} %"),
        ("P1: requests for links, our two copies included", "1", share("the same with copies, requests, 8 peers")),
        ("P1: URLs named in them", "1", share("the same with copies, URLs, 8 peers")),
        (
            "P1: URLs named in them, while pages are lent",
            "1",
            share("the same with copies, URLs, 8 peers that shed (drain)"),
        ),
        (
            "P2: 500 URLs on five unlike nodes, shares by prediction (*fitted*)",
            f"{theirs_s:.0f} s",
            f"{ours('powers', seconds):.0f} s",
        ),
        (
            "P3: URLs that move needlessly when one of 100 peers leaves",
            f"{ours('assignment', f'{needless}two-level hash'):.1f} %",
            f"{ours('assignment', f'{needless}XOR owner'):.1f} %",
        ),
        (
            "P4: posts fetched again before three days are over",
            f"{ours('revisits', early, 'theirs'):g}",
            f"{ours('revisits', early):g}",
        ),
        (
            "P4: bytes of a URL in the history, one copy",
            f"{ours('revisits', bytes_) * ours('revisits', redis):.0f}",
            f"{ours('revisits', bytes_):.1f}",
        ),
    ]
    return table(("", "the paper's system", "kadcrawl"), rows)


SENTENCES: Final[dict[str, Callable[[KeptFigures], str]]] = {
    "guarantees": guarantees,
    "speed": speed,
    "papers-side-by-side": papers_side_by_side,
    "faster-than-scrapy": faster_than_scrapy,
}
