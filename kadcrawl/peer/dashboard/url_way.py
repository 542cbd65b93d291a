"""The way of one URL as the dashboard shows it: its place, its state, its history, and what the check says. A decision.

Tests: tests/peer/dashboard/test_url_way.py
"""

from datetime import datetime
from typing import Any

from kadcrawl.crawl.scope.explain import UrlVerdict
from kadcrawl.link.wire.failure_reasons import explained
from kadcrawl.link.wire.find_url_messages import UrlFound
from kadcrawl.link.wire.messages import Contact


def sentences(verdict: UrlVerdict) -> list[str]:
    """Return what the check says of a URL, as sentences."""
    said = [f"{'In scope' if verdict.in_scope else 'Not in scope'}: {verdict.why}."]
    if verdict.canonical is not None and verdict.canonical != verdict.url:
        without = f", without {', '.join(verdict.stripped)}" if verdict.stripped else ""
        said.append(f"The crawl takes it for {verdict.canonical}{without}.")
    if verdict.delay_s is not None:
        said.append(
            f"Its site is left alone for {verdict.delay_s:g} s after each request, or longer by its robots.txt."
        )
    if verdict.role is not None:
        said.append(f"Its role is {verdict.role}; its links are {'followed' if verdict.follows else 'not followed'}.")
    if verdict.record_rule is not None:
        said.append(f"Its records are made by the rule {verdict.record_rule}.")
    if verdict.site_rule is not None:
        said.append(f"The rule for {', '.join(map(str, verdict.site_rule.get('match', [])))} decides about its site.")
    return said


def url_way(verdict: UrlVerdict, found: UrlFound) -> dict[str, Any]:
    """Return the way of a URL that the crawl can have."""
    return {
        "url": verdict.canonical,
        "key": verdict.key,
        "site": verdict.site,
        "owner": _peer(found.owner),
        "backups": [_peer(backup) for backup in found.backups],
        "state": found.state,
        "reason": str(explained(found.reason)) if found.reason else None,
        "history": _history(found),
        "why": sentences(verdict),
    }


def _peer(contact: Contact) -> dict[str, str]:
    host, port = contact.address
    return {"id": contact.id.hex(), "address": f"[{host}]:{port}" if ":" in host else f"{host}:{port}"}


def _history(found: UrlFound) -> list[dict[str, Any]]:
    """Return what is known of the past and the future of a URL, with times where they are known."""
    events: list[dict[str, Any]] = []
    if (at := _second(found.captured)) is not None:
        events.append({"at": at, "status": None, "what": "the last body that is kept was fetched"})
    if found.state == "finished":
        what = "it was fetched or it failed: of finished URLs the crawl keeps fingerprints alone, which rarely err"
        events.append({"at": None, "status": None, "what": what})
    if found.rounds:
        times = f"{found.rounds} time{'s' if found.rounds > 1 else ''}"
        events.append({"at": None, "status": None, "what": f"it was finished {times} before this round"})
    if found.tries:
        tries = f"{found.tries} {'tries' if found.tries > 1 else 'try'}"
        events.append({"at": found.due_at, "status": None, "what": f"the next try begins, after {tries} that failed"})
    elif found.due_at is not None and found.state in ("done", "failed"):
        events.append({"at": found.due_at, "status": None, "what": "it is due again"})
    if found.state in ("pending", "under way"):
        links = f"{found.depth} link{'' if found.depth == 1 else 's'}"
        events.append({"at": None, "status": None, "what": f"it was found {links} away from a seed"})
    return events


def _second(warc_date: str) -> float | None:
    try:
        return datetime.fromisoformat(warc_date).timestamp()
    except ValueError:
        return None
