"""What `kadcrawl status` prints: the swarm in a line, what keeps it, and its peers in a table; or all of it as JSON."""

import json

import click

from kadcrawl.cli.options import shown
from kadcrawl.cli.summary import add_up, limits_met, next_due_s
from kadcrawl.cli.table import print_rows
from kadcrawl.cli.waits import explained, waits
from kadcrawl.durations import roughly
from kadcrawl.history.seen import Period
from kadcrawl.link.leaf_messages import LEAF_STATE
from kadcrawl.link.messages import RESTING, Status


def show(answer: Status, as_json: bool) -> None:
    """Print what a peer says of its swarm."""
    summary = add_up(answer.answer.rows, 0.0, answer.job)
    states = {row.state for row in answer.answer.rows if not row.state.startswith(LEAF_STATE)}
    waiting = {state for state in states if state.startswith("paused: ")}
    state = "paused" if answer.paused else "done" if answer.ended else "crawling"
    if state == "crawling" and len(waiting) == 1 and waiting == states:
        (state,) = waiting  # Nobody crawls, and all for the same reason.
    due_s = next_due_s(answer.answer.rows)
    if states == {RESTING}:
        state = RESTING
    pending = sum(row.pending for row in answer.answer.rows)
    if as_json:
        rows = [
            {
                "id": row.contact.id.hex(),
                "address": shown(row.contact.address),
                "state": row.state,
                "pending": row.pending,
                "in_flight": row.in_flight,
                "lent": row.lent,
                "borrowed": row.borrowed,
                "pages": row.counters.pages,
                "urls": row.counters.urls,
                "failed": row.counters.failed,
                **({} if summary.records is None else {"records": row.counters.records}),
                "behind": row.behind,
                "fingerprints": row.fingerprints,
                "uptime_s": row.uptime_s,
            }
            for row in answer.answer.rows
        ]
        totals = {**summary.as_json(), "peers": rows, "state": state, "pending": pending}
        totals["unanswered"] = answer.answer.tally.missing
        totals["next_due_s"] = due_s
        totals["seeds"] = list(answer.job.seeds)
        del totals["seconds"]
        click.echo(json.dumps(totals, indent=2))
        return
    click.echo(f"{state}: {summary.pages} pages, {pending} pending, {sum(summary.urls_failed.values())} failed")
    for sentence in explained(waits(answer.answer.rows)):
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
    if answer.answer.tally.missing:
        click.echo(f"{answer.answer.tally.missing} part(s) of the swarm did not answer")
