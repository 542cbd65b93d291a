"""The output of `kadcrawl status`: a line about the swarm, its blocked reasons, and a table of peers, or JSON."""

import json
from collections.abc import Sequence
from dataclasses import replace

import click
import msgspec

from kadcrawl.cli.view.addresses import shown
from kadcrawl.cli.view.blocked_reasons import blocked_reasons, explained
from kadcrawl.cli.view.orders import order_lines
from kadcrawl.cli.view.refusing_sites import refusing_sites, sentences
from kadcrawl.cli.view.summary import add_up, limits_met, next_due_s
from kadcrawl.cli.view.table import print_rows
from kadcrawl.link.wire.given_order import GivenOrder
from kadcrawl.link.wire.messages import PeerRow, Status
from kadcrawl.link.wire.peer_state import GONE, PeerState, state_text
from kadcrawl.link.wire.unresolved import still_failed
from kadcrawl.peer.crawl_status import state_of_swarm
from kadcrawl.settings.durations import roughly
from kadcrawl.settings.job_changes import changed
from kadcrawl.store.bloom.expiring_filter import Period
from kadcrawl.system.plural import counted

_OF_A_RUN = {"seconds", "peers", "failed_examples", "pages_lost"}
"""Fields of a summary that the status lacks, or has in another form."""


class RefusingSiteFigures(msgspec.Struct, kw_only=True):
    """A site that refuses requests, in the JSON of `kadcrawl status`."""

    site: str
    """Site, at most 100 characters of it."""
    status: int
    """Status by which the site refused the last request, 429 or 503."""
    refusals: int
    """Refusals in a row."""
    wait_s: float
    """Seconds until the site is asked again."""


class PeerFigures(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The figures of one peer in the JSON of `kadcrawl status`."""

    id: str
    """ID of the peer, 20 bytes in hex."""
    address: str
    """Address at which other peers reach the peer, HOST:PORT. For a leaf, the address of the peer that it asks."""
    state: str
    """State of the peer in words. A leaf has `leaf:` in front."""
    pending: int
    """URLs that the peer owns and that are not finished."""
    in_flight: int
    """Requests under way."""
    lent: int
    """Pending URLs of the peer that others fetch for it at present."""
    borrowed: int
    """URLs of others that the peer fetches for them at present."""
    pages: int
    """URLs that the peer fetched and a server answered, with any status."""
    urls: int
    """URLs that the peer accepted as their owner."""
    failed: dict[str, int]
    """URLs that failed at this peer, by reason."""
    records: int | None = None
    """Lines of the peer's records.jsonl."""
    record_errors: int | None = None
    """Pages whose hook or selectors failed at this peer, so that they have no records."""
    behind: int
    """Bytes of the peer's results that its sinks have not received yet."""
    fingerprints: int
    """Fingerprints of finished URLs that the peer keeps, its own and copies. 0 with an exact history."""
    uptime_s: int
    """Seconds since the peer started."""


class SwarmFigures(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The JSON of `kadcrawl status`: the figures of the swarm, and of each peer."""

    pages: int
    """URLs that a server answered, with any status. Another visit counts again."""
    bytes: int
    """Bytes of bodies as received."""
    urls_found: int
    """URLs that the peers accepted as their owners, at least those done and pending."""
    urls_done: int
    """URLs that are finished, fetched or failed. A URL that is to be fetched again is out until it is. A URL that two
    peers finished, as after a crash, counts at both."""
    urls_failed: dict[str, int]
    """URLs whose last visit failed, by reason. The reasons are those of pages.jsonl, with rare HTTP statuses taken
    together."""
    duplicates: int
    """Pages that one peer finished twice, although no visit was due."""
    left_behind: int
    """Always 0: only the summary of a local crawl knows this number."""
    links_seen: int
    """Links found on pages, repeats included."""
    links_left_out: dict[str, int]
    """Links that a limit kept from being followed as they were found, by limit, repeats included."""
    peer_messages: int
    """Messages between peers, datagrams included."""
    revisits: int
    """Pages that were fetched again when they were due, or by an order to retry. A retried URL counts also if nobody
    could request it before, as after `address_refused`. 0 with fingerprints, which do not tell a later visit from the
    first."""
    unchanged: int
    """Pages fetched again without a change."""
    records: int | None = None
    """Lines of records.jsonl of all peers."""
    record_errors: int | None = None
    """Pages whose hook or selectors failed, so that they have no records."""
    limit_reached: str
    """The limit of the whole crawl that is reached while URLs are left: `pages`, `bytes` or `time`. Empty otherwise."""
    paused_sites: list[str]
    """Sites that an order of a person keeps paused, a host or `*.` and a domain, the latest order first."""
    changed_settings: dict[str, float]
    """Settings of the job that an order has changed: seconds, bytes or counts, by the name of the option."""
    orders: list[GivenOrder]
    """The orders of people that stand, the latest first."""
    damaged_journals: list[str]
    """Directories of peers whose figures are missing, as their journals are damaged. None while a peer answers."""
    peers: list[PeerFigures]
    """The peers that are there, in the order of their answers."""
    state: str
    """State of the whole swarm in words."""
    pending: int
    """URLs of all peers that are not finished."""
    left: list[PeerFigures]
    """Peers that have left, whose figures are in the totals."""
    unanswered: int
    """Parts of the swarm that did not answer. Their figures are missing in the totals."""
    refusing: list[RefusingSiteFigures]
    """Sites with pending URLs that refuse requests, the longest wait first, at most 5 of each peer."""
    refusing_count: int
    """Number of sites with pending URLs that refuse requests."""
    next_due_s: float | None
    """Seconds until the first page is fetched again, or null if no page is."""
    seeds: tuple[str, ...]
    """The seeds of the job."""


def show(answer: Status, as_json: bool, damaged_journals: Sequence[str] = ()) -> None:
    """Print the status of a swarm, and in JSON the directories whose journals are damaged."""
    summary = add_up(answer.answer.rows, 0.0, answer.job, answer.orders)
    summary = replace(summary, damaged_journals=[*damaged_journals])
    there = [row for row in answer.answer.rows if row.state not in GONE]
    left = [row for row in answer.answer.rows if row.state in GONE]
    state = state_of_swarm(answer.answer.rows, paused=answer.paused, ended=answer.ended)
    due_s = next_due_s(answer.answer.rows)
    pending = sum(row.pending for row in answer.answer.rows)
    if as_json:
        with_records = summary.records is not None
        totals = SwarmFigures(
            **{name: value for name, value in summary.as_json().items() if name not in _OF_A_RUN},
            state=state,
            pending=pending,
            peers=[_figures(row, with_records) for row in there],
            left=[_figures(row, with_records) for row in left],
            unanswered=answer.answer.tally.missing,
            refusing=[
                RefusingSiteFigures(site=one.site, status=one.status, refusals=one.refusals, wait_s=round(one.wait_s))
                for one in refusing_sites(answer.answer.rows)
            ],
            refusing_count=sum(row.refusing_count for row in answer.answer.rows),
            next_due_s=due_s,
            seeds=answer.job.seeds,
        )
        click.echo(json.dumps(msgspec.to_builtins(totals), indent=2))
        return
    click.echo(
        f"{state}: {counted(summary.pages, 'page')}, {pending} pending, {sum(summary.urls_failed.values())} failed"
    )
    for sentence in order_lines(summary.orders):
        click.echo(sentence)
    for sentence in explained(blocked_reasons(answer.answer.rows)):
        click.echo(sentence)
    if summary.revisits:
        again = counted(summary.revisits, "of them was", "of them were")
        click.echo(f"{again} fetched again, {summary.unchanged} as they had been")
    if summary.records is not None:
        errors = f", {summary.record_errors} record_errors" if summary.record_errors else ""
        click.echo(f"{summary.records} records{errors}")
    if due_s is not None:
        click.echo(f"the next page is due {'now' if due_s < 1 else f'in {roughly(due_s)}'}")
    if answer.job.history == "bloom" and state != state_text(PeerState.NOT_RUNNING):  # A directory does not count them.
        fingerprints = sum(row.fingerprints for row in answer.answer.rows)
        click.echo(
            f"{fingerprints} fingerprints of finished URLs are kept, with copies; by them one unknown URL in "
            f"{1 / Period().error:,.0f} is taken for known"
        )
    refusals_max = changed(answer.job, summary.changed_settings).refusals_max
    for sentence in (*sentences(answer.answer.rows, refusals_max), *limits_met(summary.links_left_out)):
        click.echo(sentence)
    print_rows(answer.answer.rows)
    if left:
        click.echo(f"the totals count {len(left)} that left; what a peer did that died is missing until it is back")
    if answer.answer.tally.missing:
        click.echo(f"{counted(answer.answer.tally.missing, 'part')} of the swarm did not answer")


def _figures(row: PeerRow, with_records: bool) -> PeerFigures:
    return PeerFigures(
        id=row.contact.id.hex(),
        address=shown(row.contact.address),
        state=row.state_text,
        pending=row.pending,
        in_flight=row.in_flight,
        lent=row.lent,
        borrowed=row.borrowed,
        pages=row.counters.pages,
        urls=row.counters.urls,
        failed=still_failed([row.counters]),
        records=row.counters.records if with_records else None,
        record_errors=row.counters.record_errors if with_records else None,
        behind=row.lag,
        fingerprints=row.fingerprints,
        uptime_s=row.uptime_s,
    )
