"""The output of `kadcrawl status`: a line about the swarm, its blocked reasons, and a table of peers, or JSON."""

import json
from typing import Any

import click

from kadcrawl.cli.options import shown
from kadcrawl.cli.view.blocked_reasons import blocked_reasons, explained
from kadcrawl.cli.view.summary import add_up, limits_met, next_due_s
from kadcrawl.cli.view.table import print_rows
from kadcrawl.link.wire.messages import PeerRow, Status
from kadcrawl.link.wire.peer_state import GONE, MACHINE_PAUSES, PeerState, state_text
from kadcrawl.settings.durations import roughly
from kadcrawl.store.bloom.expiring_filter import Period


def show(answer: Status, as_json: bool) -> None:
    """Print a peer's answer about its swarm."""
    summary = add_up(answer.answer.rows, 0.0, answer.job)
    there = [row for row in answer.answer.rows if row.state not in GONE]
    left = [row for row in answer.answer.rows if row.state in GONE]
    states = {row.state for row in there if not row.hosted_leaf}
    waiting = states & MACHINE_PAUSES
    state = "paused" if answer.paused else "done" if answer.ended else "crawling"
    if state == "crawling" and len(waiting) == 1 and waiting == states:
        state = state_text(next(iter(waiting)))  # Nobody crawls, and all for the same reason.
    due_s = next_due_s(answer.answer.rows)
    if states == {PeerState.RESTING}:
        state = state_text(PeerState.RESTING)
    pending = sum(row.pending for row in answer.answer.rows)
    if as_json:
        with_records = summary.records is not None
        totals = {**summary.as_json(), "state": state, "pending": pending}
        totals["peers"] = [_as_json(row, with_records) for row in there]
        totals["left"] = [_as_json(row, with_records) for row in left]
        totals["unanswered"] = answer.answer.tally.missing
        totals["next_due_s"] = due_s
        totals["seeds"] = list(answer.job.seeds)
        del totals["seconds"]
        click.echo(json.dumps(totals, indent=2))
        return
    click.echo(f"{state}: {summary.pages} pages, {pending} pending, {sum(summary.urls_failed.values())} failed")
    for sentence in explained(blocked_reasons(answer.answer.rows)):
        click.echo(sentence)
    if summary.revisits:
        click.echo(f"{summary.revisits} of them were fetched again, {summary.unchanged} as they had been")
    if summary.records is not None:
        click.echo(f"{summary.records} records")
    if due_s is not None:
        click.echo(f"the next page is due {'now' if due_s < 1 else f'in {roughly(due_s)}'}")
    if answer.job.history == "bloom":
        fingerprints = sum(row.fingerprints for row in answer.answer.rows)
        click.echo(
            f"{fingerprints} fingerprints of finished URLs are kept, with copies; by them one unknown URL in "
            f"{1 / Period().error:,.0f} is taken for known"
        )
    for sentence in limits_met(summary.links_left_out):
        click.echo(sentence)
    print_rows(answer.answer.rows)
    if left:
        click.echo(f"the totals count {len(left)} that left; what a peer did that died is missing until it is back")
    if answer.answer.tally.missing:
        click.echo(f"{answer.answer.tally.missing} part(s) of the swarm did not answer")


def _as_json(row: PeerRow, with_records: bool) -> dict[str, Any]:
    return {
        "id": row.contact.id.hex(),
        "address": shown(row.contact.address),
        "state": row.state_text,
        "pending": row.pending,
        "in_flight": row.in_flight,
        "lent": row.lent,
        "borrowed": row.borrowed,
        "pages": row.counters.pages,
        "urls": row.counters.urls,
        "failed": row.counters.failed,
        **({"records": row.counters.records} if with_records else {}),
        "behind": row.lag,
        "fingerprints": row.fingerprints,
        "uptime_s": row.uptime_s,
    }
