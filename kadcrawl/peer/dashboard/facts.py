"""The document of the dashboard, without what only two looks can tell: the crawl, its peers and its failures.

All texts of other peers were checked by the wire, and pages show them as text alone. A decision.
"""

from collections.abc import Callable
from typing import Any

from kadcrawl.link.wire.failure_reasons import explained
from kadcrawl.link.wire.leaf_messages import is_leaf
from kadcrawl.link.wire.messages import PeerRow
from kadcrawl.link.wire.peer_row import PeerDetails
from kadcrawl.link.wire.peer_state import GONE
from kadcrawl.link.wire.unresolved import still_done, still_failed, urls_found
from kadcrawl.peer.crawl_status import state_of_swarm
from kadcrawl.peer.dashboard.swarm_verdict import swarm_verdict
from kadcrawl.peer.dashboard.swarm_view import SwarmView
from kadcrawl.peer.monitoring.verdict import CrawlVerdict

NAME_DIGITS = 8
"""Digits of an ID by which a person knows a peer."""


def facts(
    view: SwarmView,
    own: CrawlVerdict,
    me: bytes,
    now: float,
    samples: Callable[[str], list[str]] = lambda _: [],
) -> dict[str, Any]:
    """Return the document of a swarm, as the peer `me` sees it at this second, with the verdict `own` of that peer.

    `samples` returns some URLs that failed for a reason.
    """
    there = [row for row in view.rows if row.state not in GONE]
    return {
        "me": me.hex(),
        "crawl": _crawl(view, own, there, now),
        "peers": {row.contact.id.hex(): _peer(row) for row in there},
        "failures": {
            reason: {"count": count, "meaning": str(explained(reason)), "samples": samples(reason)}
            for reason, count in still_failed(row.counters for row in view.rows).items()
        },
        "sinks": {
            sink.name: {"written": sink.written, "lag": sink.lag, "error": sink.why or None}
            for sink in view.watched.sinks
        },
    }


def _crawl(view: SwarmView, own: CrawlVerdict, there: list[PeerRow], now: float) -> dict[str, Any]:
    verdict = swarm_verdict(view, own)
    counters = [row.counters for row in view.rows]
    job = view.job
    return {
        "state": state_of_swarm(view.rows, paused=view.paused, ended=view.ended),
        "started": round(now - max((row.uptime_s for row in there), default=0)),
        "partition": job.partition if job is not None else None,
        "history": job.history if job is not None else None,
        "cell_bits": job.bits if job is not None else None,
        "pages": sum(one.pages for one in counters),
        "pending": sum(row.pending for row in there),
        "failed": sum(still_failed(counters).values()),
        "found": urls_found(view.rows),
        "done": max(0, still_done(counters)),
        "received_bytes": sum(one.bytes for one in counters),
        "verdict": {"done": verdict.done, "word": verdict.word.value, "sentence": verdict.sentence},
    }


def _peer(row: PeerRow) -> dict[str, Any]:
    host, port = row.contact.address
    return {
        "name": row.contact.id.hex()[:NAME_DIGITS],
        "address": "none" if is_leaf(row.contact) else f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "kind": "leaf" if row.hosted_leaf else "full",
        "state": row.state_text,
        "pages": row.counters.pages,
        "pending": row.pending,
        "in_flight": row.in_flight,
        "heard_s": 0,
        "alive": True,
        **_details(row.details),
        **({"cells_owned": None} if row.hosted_leaf else {}),
    }


def _details(details: PeerDetails | None) -> dict[str, Any]:
    if details is None:
        return {}
    return {
        "version": details.version,
        "level": round(details.level, 2),
        "memory_bytes": details.memory_bytes or None,
        "cells_owned": details.cells_owned,
    }
