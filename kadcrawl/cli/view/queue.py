"""The words in which a person reads the queue of a swarm: a table of sites, depths, ages, and the next URLs.

Tests: tests/cli/commands/test_queue.py
"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from kadcrawl.cli.view.live.layout import TextColumn, table_lines
from kadcrawl.link.wire.given_order import GivenOrder
from kadcrawl.peer.queue_status import QueueStatus, SiteQueue
from kadcrawl.settings.durations import roughly
from kadcrawl.settings.host_matches import most_specific
from kadcrawl.system.plural import counted
from kadcrawl.system.printable import printable

DEPTHS_SHOWN = 12
"""Depths that a line names. The others count together."""


def as_json(queue: QueueStatus, orders: Sequence[GivenOrder]) -> str:
    """Return the queue and the orders that stand as JSON."""
    figures = asdict(queue)
    for site in figures["top"]:
        site["order"] = order_of(site["site"], orders)
    return json.dumps({**figures, "orders": [asdict(order) for order in orders]}, indent=2)


def site_lines(queue: QueueStatus, orders: Sequence[GivenOrder]) -> list[str]:
    """Return the table of the sites with the most pending URLs."""
    if not queue.top:
        return ["no URL is pending"]
    columns = [
        TextColumn("site", [one.site for one in queue.top], is_text=True),
        TextColumn("pending", [f"{one.pending:,}" for one in queue.top]),
        TextColumn("status", ["-" if one.status is None else str(one.status) for one in queue.top]),
        TextColumn("delay", [_seconds(one.delay_s) for one in queue.top]),
        TextColumn("next in", [_seconds(one.wait_s) for one in queue.top]),
        TextColumn("owner", [_owner(one) for one in queue.top], is_text=True),
        TextColumn("order", [order_of(one.site, orders) or "" for one in queue.top], is_text=True),
    ]
    others = queue.sites - len(queue.top)
    return [*table_lines(columns), *([f"... and {others:,} more"] if others > 0 else []), *missing_lines(queue)]


def queue_lines(queue: QueueStatus) -> list[str]:
    """Return the lines about depths, ages and next URLs."""
    sites = f" of {queue.sites:,} site{'s' if queue.sites != 1 else ''}"
    lines = [f"{queue.pending:,} URL{'s' if queue.pending != 1 else ''} pending{sites}"]
    if queue.pending:
        depths = [f"{depth}: {count:,}" for depth, count in list(queue.by_depth.items())[:DEPTHS_SHOWN]]
        deeper = sum(list(queue.by_depth.values())[DEPTHS_SHOWN:])
        lines.append(f"by depth  {', '.join([*depths, *([f'deeper: {deeper:,}'] if deeper else [])])}")
        ages = [f"{_age(seconds)}: {count:,}" for seconds, count in queue.by_age if count]
        lines.append(f"by age    {', '.join(ages)}")
    for one in queue.next:
        tries = f", try {one.tries + 1}" if one.tries else ""
        wait = f", not before {roughly(one.wait_s)}" if one.wait_s else ""
        lines.append(f"depth {one.depth}{tries}{wait}  {printable(one.url)}")
    return lines


def missing_lines(queue: QueueStatus) -> list[str]:
    """Return the line about parts of the swarm that are missing, if there are any."""
    if not queue.unanswered:
        return []
    return [f"{counted(queue.unanswered, 'part')} of the swarm did not answer: their URLs are missing"]


def order_of(site: str, orders: Sequence[GivenOrder]) -> str | None:
    """Return the orders that hold for a site in words, or None without any."""
    words = {"pause": ("paused", "goes on"), "exclude": ("excluded", "included")}
    said = []
    for kind, (on, off) in words.items():
        value = most_specific({one.about: one.value for one in orders if one.kind == kind}, site)
        if value is not None:
            said.append(on if value else off)
    delay_s = most_specific({one.about: one.value for one in orders if one.kind == "delay"}, site)
    return ", ".join([*said, *([f"slow: {_seconds(delay_s)}"] if delay_s else [])]) or None


def _owner(site: SiteQueue) -> str:
    return site.owner[:8] + (f" and {site.owners - 1} more" if site.owners > 1 else "")


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if 0 < seconds < 10 and seconds != int(seconds) else roughly(seconds)


def _age(seconds: int | None) -> str:
    return "older" if seconds is None else f"up to {roughly(seconds)}"
