"""The figures of a directory whose peers do not run, from their journals, for the status, the summary and a new start.

Each URL is in the journals of up to three peers. So the pending URLs of a cell count once: by the journal that knows
the most URLs of the cell, as those of peers that died earlier are out of date. Among equal journals it is that of the
peer that is nearest to the cell, which owned the cell unless a peer from elsewhere did.

Tests: tests/cli/test_command_resting.py, tests/cli/local/test_resting.py
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from kadcrawl.cli.targets import address_of, data_directories, directories, has_lost_journal, is_set_aside
from kadcrawl.crawl.crawl_limits import told_limits
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.errors import KadcrawlError
from kadcrawl.keys import ID_BYTES, Cell, anchor, site_hash
from kadcrawl.link.wire.given_order import orders_in_force
from kadcrawl.link.wire.leaf_messages import is_leaf, leaf_contact
from kadcrawl.link.wire.leave_messages import Departed
from kadcrawl.link.wire.messages import (
    COUNT_MAX,
    LONG_S_MAX,
    REFUSING_MAX,
    SITE_SHOWN_MAX,
    Contact,
    PeerCounters,
    PeerRow,
    RefusingSite,
    Status,
    SwarmStatus,
    Tally,
)
from kadcrawl.link.wire.order_messages import StandingOrder
from kadcrawl.link.wire.peer_row import CrawlLimit
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.membership.departed import departed_row, each_once, journaled_departed
from kadcrawl.peer.membership.key_store import KeyStore
from kadcrawl.peer.membership.known_peers import is_same
from kadcrawl.replication.record_codec import WAIT_MAX_S
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import changed
from kadcrawl.store.journal import UNREADABLE, said
from kadcrawl.store.journal_reader import open_at_rest, open_unchanged
from kadcrawl.store.line_log import MOVE_AWAY
from kadcrawl.store.log_copies import begins
from kadcrawl.store.log_parts import has_log
from kadcrawl.store.migration import BY_ROWID
from kadcrawl.system.file_names import JOURNAL, PAGE_LOG

_GRANTS = msgspec.msgpack.Decoder(dict[bytes, int])
_ORDERS = msgspec.msgpack.Decoder(list[StandingOrder])
_NOT_ALLOWED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY}
NO_ADDRESS = ("127.0.0.1", 1)
"""The address of a peer whose file of that is gone."""


@dataclass(frozen=True, slots=True)
class RestingPeer:
    """The journal of one peer."""

    directory: Path
    job: Job
    contact: Contact
    counters: PeerCounters
    pending: dict[Cell, int]
    """Pending URLs of each cell that the peer holds, copies included."""
    known: dict[Cell, int]
    """URLs of each of these cells that the peer knows, pending or done."""
    due: float | None
    """Wall-clock second at which the first page is due again, or None."""
    departed: Sequence[Departed]
    orders: Sequence[StandingOrder]
    """The standing orders that the peer knew, lifted ones included."""
    begun: int
    """Pages of `--max-pages` that the peer had used of its grants."""
    grants: dict[bytes, int]
    """The grants of that budget that the peer knew of, by the ID of their peer."""
    limit: bytes
    """The limit of the whole crawl that was reached (`CrawlLimits.journaled`), or nothing."""
    refusing: Sequence[tuple[str, int, int, float]]
    """(site, status, refusals in a row, wall-clock second of the next request) of each site that refuses requests."""


class UnreadableJournal(NamedTuple):
    """A journal that has no figures, as it is damaged or may not be read."""

    directory: Path
    why: str
    may_be_whole: bool = False
    """True if this user or this disk does not let the journal be read, and nothing says that it is damaged."""

    def lacking(self, data: Path | None) -> str:
        """Return the sentence about the missing figures. `data` is the directory of the crawl."""
        if self.may_be_whole:
            return (
                f"the figures lack those of {self.directory}, whose journal cannot be read: {self.why}; "
                "look at it as the user of the peer, on the machine of the peer"
            )
        lacking = f"the figures lack those of {self.directory}, whose journal is damaged: {self.why}"
        if data is not None and is_set_aside(self.directory, data):
            return f"{lacking}; its results stay good"
        return f"{lacking}; {MOVE_AWAY}"


def resting_peers(data: Path) -> list[RestingPeer]:
    """Return the peers whose journals are in this directory or below it. Unreadable journals are left out."""
    return journals_at_rest(data)[0]


def journals_at_rest(data: Path) -> tuple[list[RestingPeer], list[UnreadableJournal]]:
    """Return the peers whose journals are in this directory or below it, and the journals that cannot be read.

    Leaves of the same job are among the peers, whatever the names of their directories. A journal in which no crawl has
    begun is among neither.
    """
    named = directories(data)
    found = [_read(one) if (one / JOURNAL).exists() else _lost_journal(one) for one in named]
    peers = [one for one in found if isinstance(one, RestingPeer)]
    unreadable = [one for one in found if isinstance(one, UnreadableJournal)]
    others = [_read(one) for one in data_directories(data) if one not in named and (one / JOURNAL).exists()]
    peers += [one for one in others if isinstance(one, RestingPeer) and _is_leaf_of(one, peers)]
    return peers, unreadable


def crawl_directories(data: Path, job: Job) -> list[Path]:
    """Return the directories of the peers and leaves of a crawl of this job in a directory.

    Those of a local crawl have names of their own (`peer-1`). Another directory counts if its journal is of the same
    job, and it is no copy of a peer or leaf that is there under another name. Running peers may have their journals
    open.
    """
    own, others = _own_and_others(data)
    kept = _peers_in(own)
    found = [*own]
    for one in others:
        identity = _identity(one)
        is_of_crawl = is_set_aside(one, data) or (identity is not None and is_same(job, identity[1]))
        if is_of_crawl and not _is_copy(one, identity, kept, data):
            if identity is not None:
                kept.setdefault(identity[0], one)
            found.append(one)
    return found


def directories_without_copies(data: Path) -> list[Path]:
    """Return the directories that may hold a peer's data, without copies of those of a peer's own.

    So a command that changes files leaves a backup beside the peers alone. To change the copy, name its directory.
    """
    own, others = _own_and_others(data)
    kept = _peers_in(own)
    return [*own, *(one for one in others if not _is_copy(one, _identity(one), kept, data))]


def peer_in(directory: Path) -> bytes | None:
    """Return the ID of the peer with the journal in a directory, or None without any."""
    identity = _identity(directory)
    return None if identity is None else identity[0]


def _own_and_others(data: Path) -> tuple[list[Path], list[Path]]:
    """Return the directories that a crawl goes on with, and the others that may hold a peer's data."""
    own = [one for one in directories(data) if not is_set_aside(one, data)]
    return own, [one for one in data_directories(data) if one not in own]


def _peers_in(directories_of_peers: Iterable[Path]) -> dict[bytes, Path]:
    """Return the directories with a journal by the IDs of their peers."""
    return {identity[0]: one for one in directories_of_peers if (identity := _identity(one)) is not None}


def _is_copy(one: Path, identity: tuple[bytes, Job] | None, kept: Mapping[bytes, Path], data: Path) -> bool:
    """Return whether a directory is a copy of a kept directory of the same peer.

    A directory that was moved aside for an older copy of it has page lines of its own, and is no copy.
    """
    original = None if identity is None else kept.get(identity[0])
    return original is not None and (not is_set_aside(one, data) or begins(one / PAGE_LOG, original / PAGE_LOG))


def _identity(directory: Path) -> tuple[bytes, Job] | None:
    """Return the ID and job in the journal of a directory, or None without any."""
    path = (directory / JOURNAL).absolute()
    if not path.exists():
        return None
    try:
        with closing(open_unchanged(path)) as journal:
            known = "SELECT name, value FROM meta WHERE name IN ('job', 'node_id', 'leaf_id')"
            meta: dict[str, bytes] = dict(journal.execute(known))
        return _contact(directory, meta).id, msgspec.json.decode(meta["job"], type=Job)
    except (KeyError, *UNREADABLE, msgspec.DecodeError, KadcrawlError, TypeError, ValueError):
        return None


def rows_at_rest(
    directories: Iterable[Path], job: Job, now: float
) -> tuple[list[PeerRow], Sequence[StandingOrder], list[UnreadableJournal]]:
    """Return the rows and orders of the peers with these directories, and the journals that cannot be read.

    `now` is a wall-clock second. Other peers have the URLs that a peer whose directory was moved aside had left.
    """
    peers: list[RestingPeer] = []
    unreadable: list[UnreadableJournal] = []
    for directory in directories:
        found, damaged = journals_at_rest(directory)
        peers += (replace(peer, pending={}) if is_set_aside(directory, directory.parent) else peer for peer in found)
        unreadable += damaged
    status = status_of(peers, job, now)
    # The rows of departed peers come with those of other peers.
    return [row for row in status.answer.rows if row.state is PeerState.NOT_RUNNING], status.orders, unreadable


def _is_leaf_of(one: RestingPeer, peers: Sequence[RestingPeer]) -> bool:
    """Return whether this is a leaf, of the job of these peers as far as can be known."""
    return is_leaf(one.contact) and any(is_same(peer.job, one.job) for peer in peers if not is_leaf(peer.contact))


def job_of(peers: Iterable[RestingPeer]) -> Job | None:
    """Return the job of these peers with the seeds of all, or None without a peer."""
    jobs = [peer.job for peer in peers]
    if not jobs:
        return None
    return replace(jobs[0], seeds=tuple(dict.fromkeys(url for job in jobs for url in job.seeds)))


def status_of(peers: Sequence[RestingPeer], job: Job, now: float) -> Status:
    """Return the status of a swarm of these peers, none of which runs. `now` is a wall-clock second."""
    pending, refusing = _owned(peers, job), _refusing_sites(peers, now)
    orders = [order for peer in peers for order in peer.orders]
    limits = _limits(job, orders)
    rows = [
        PeerRow(
            contact=peer.contact,
            state=PeerState.NOT_RUNNING,
            pending=min(pending.get(peer.contact.id, 0), COUNT_MAX),
            in_flight=0,
            uptime_s=0,
            counters=peer.counters,
            allowance=0,
            granted=min(peer.begun, COUNT_MAX),
            limit=next((kind for kind, told in limits.items() if told == peer.limit), ""),
            refusing=refusing[peer.contact.id][:REFUSING_MAX],
            refusing_count=len(refusing[peer.contact.id]),
            due_s=None if peer.due is None else min(max(0.0, peer.due - now), LONG_S_MAX),
            hosted_leaf=is_leaf(peer.contact),
        )
        for peer in peers
    ]
    departed = (departed_row(one) for peer in peers for one in peer.departed)
    tally = Tally(len(rows), bytes(16), sum(row.pending for row in rows), 0, 0)
    return Status(job, SwarmStatus(tally, each_once([*rows, *departed])), ended=False, paused=False, orders=orders)


def granted_elsewhere(peers: Sequence[RestingPeer]) -> int:
    """Return the pages of `--max-pages` granted to other peers, without those in the rows of departed peers."""
    known: dict[bytes, int] = {}
    for peer in peers:
        for one, granted in peer.grants.items():
            known[one] = max(known.get(one, 0), granted)
    here = {peer.contact.id for peer in peers}
    departed = each_once(departed_row(one) for peer in peers for one in peer.departed)
    told = {row.contact.id: row.granted for row in departed}
    return sum(max(0, granted - told.get(one, 0)) for one, granted in known.items() if one not in here)


def _limits(job: Job, orders: Iterable[StandingOrder]) -> dict[CrawlLimit, bytes]:
    """Return the limits of a crawl as they are journaled once they are reached, by their kind."""
    return told_limits(changed(job, {one.about: one.value for one in orders_in_force(orders) if one.kind == "set"}))


def _owned(peers: Sequence[RestingPeer], job: Job) -> Counter[bytes]:
    """Return the pending URLs of the cells that each peer owned last among these peers, by its ID."""
    # Other crawls forget URLs that are done, or have done URLs pending again: more URLs are no proof of later news.
    only_grows = job.history == "exact" and job.recrawl_after_s is None

    def rank(peer: RestingPeer, cell: Cell) -> tuple[int, int, int]:
        distance = peer.contact.number ^ anchor(cell, job.bits)
        return (-peer.known[cell], peer.pending[cell], distance) if only_grows else (0, 0, distance)

    latest: dict[Cell, RestingPeer] = {}
    for peer in peers:
        for cell in peer.pending:
            known = latest.get(cell)
            if known is None or rank(peer, cell) < rank(known, cell):
                latest[cell] = peer
    pending: Counter[bytes] = Counter()
    for cell, peer in latest.items():
        pending[peer.contact.id] += peer.pending[cell]
    return pending


def _refusing_sites(peers: Sequence[RestingPeer], now: float) -> dict[bytes, list[RefusingSite]]:
    """Return the sites that refuse requests by the ID of a peer that has their URLs, each site once."""
    told: set[str] = set()
    found: dict[bytes, list[RefusingSite]] = {}
    for peer in peers:
        news = [row for row in peer.refusing if row[0] not in told]
        told.update(row[0] for row in news)
        sites = [
            RefusingSite(site[:SITE_SHOWN_MAX], status, refusals, min(max(0.0, until - now), WAIT_MAX_S))
            for site, status, refusals, until in news
        ]
        found[peer.contact.id] = sorted(sites, key=lambda one: (-one.wait_s, one.site))
    return found


def _read_refusing(journal: sqlite3.Connection) -> list[tuple[str, int, int, float]]:
    """Return the sites with pending URLs that refuse requests. A journal of an earlier release has no table of them."""
    if journal.execute("SELECT 1 FROM sqlite_master WHERE name='back_off'").fetchone() is None:
        return []
    rows = journal.execute(
        "SELECT site, status, refusals, until FROM back_off WHERE refusals>0 AND status BETWEEN 429 AND 503"
    ).fetchall()
    (version,) = journal.execute("PRAGMA user_version").fetchone()
    if version == BY_ROWID:
        return [row for row in rows if journal.execute("SELECT 1 FROM frontier WHERE site=?", row[:1]).fetchone()]
    pending = "SELECT 1 FROM frontier WHERE site_hash=?"
    return [row for row in rows if journal.execute(pending, (site_hash(row[0]),)).fetchone()]


def _read(directory: Path) -> RestingPeer | UnreadableJournal | None:
    path = (directory / JOURNAL).absolute()
    try:
        with closing(open_at_rest(path)) as journal:
            if journal.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
                return UnreadableJournal(directory, "it is empty") if has_log(directory / PAGE_LOG) else None
            meta: dict[str, bytes] = dict(journal.execute("SELECT name, value FROM meta WHERE typeof(value)='blob'"))
            whole = "typeof(pending)='integer' AND typeof(keys)='integer'"
            cells = journal.execute(f"SELECT cell, keys, pending FROM cell WHERE {whole}").fetchall()
            refusing = _read_refusing(journal)
            (due,) = journal.execute("SELECT min(due) FROM visit WHERE due>=0").fetchone()
        job = msgspec.json.decode(meta["job"], type=Job)
        return RestingPeer(
            directory=directory,
            job=job,
            contact=_contact(directory, meta),
            counters=Counters.from_bytes(meta.get("totals")).to_wire(),
            pending={Cell(cell): count for cell, _, count in cells if 0 <= cell < 1 << job.bits},
            known={Cell(cell): count for cell, count, _ in cells if 0 <= cell < 1 << job.bits},
            due=due if isinstance(due, float) else None,
            departed=journaled_departed(meta.get("departed")),
            orders=_ORDERS.decode(meta["orders"]) if "orders" in meta else (),
            begun=int(meta.get("pages_begun", b"0")),
            grants=_GRANTS.decode(meta["grants"]) if "grants" in meta else {},
            limit=meta.get("limit", b""),
            refusing=refusing,
        )
    except KeyError:
        return None  # The peer ended before it had a job.
    except (*UNREADABLE, msgspec.DecodeError, KadcrawlError, TypeError, ValueError) as error:
        return UnreadableJournal(directory, said(error), may_be_whole=_is_kept_from_reading(error))


def _lost_journal(directory: Path) -> UnreadableJournal | None:
    """Return the journal that is gone from the directory of a peer with pages, or None if no peer had pages there."""
    return UnreadableJournal(directory, "it is not there") if has_lost_journal(directory) else None


def _is_kept_from_reading(error: Exception) -> bool:
    """Return whether SQLite was not allowed to read a journal, as opposed to reading something wrong."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_ALLOWED


def _contact(directory: Path, meta: dict[str, bytes]) -> Contact:
    """Return the contact under which others knew the peer. A leaf has no address."""
    if not (own := peer_id(directory, meta)):
        raise KeyError("leaf_id")
    if own == meta.get("node_id"):
        return Contact(own, *(address_of(directory) or NO_ADDRESS))
    return leaf_contact(own)


def peer_id(directory: Path, meta: Mapping[str, bytes]) -> bytes:
    """Return the ID of a full peer or leaf, or no bytes if it had none yet. Raises ConfigError for a damaged key.

    `meta` has the journaled values of the directory.
    """
    if len(node_id := meta.get("node_id", b"")) == ID_BYTES:
        return node_id
    key = KeyStore(directory).peer_key()
    return meta.get("leaf_id", b"") if key is None else key.id
