"""`readings` reads the values of all metrics from the parts of one peer, at the moment when somebody asks.

Nothing is kept between two calls. The parts themselves count durations (system/duration_histogram.py), and all else is
state that they have anyway. A metric that a peer does not have, as a leaf has no cells, has no reading.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from kadcrawl.crawl.build import CrawlComponents
from kadcrawl.crawl.pause_reasons import PauseReason
from kadcrawl.link.wire.basics import REASONS_MAX, WIRE_VERSION
from kadcrawl.peer.monitoring.monitored_peer import MonitoredPeer
from kadcrawl.peer.monitoring.verdict import CrawlVerdict, WorkLeft, verdict_of
from kadcrawl.peer.resources import Resources
from kadcrawl.peer.runtime import Runtime
from kadcrawl.sinks.delivery import Delivery
from kadcrawl.system.duration_histogram import DurationHistogram, added
from kadcrawl.version import VERSION

OTHER_REASONS = "other"
"""The label of all reasons beyond `REASONS_MAX`. A lender counts reasons that borrowers tell, so there may be many."""


class Reading(NamedTuple):
    """The value of one series of a metric."""

    metric: str
    """The name in the catalog, without the prefix `kadcrawl_`."""
    value: float | DurationHistogram
    labels: tuple[str, ...] = ()


def readings(peer: MonitoredPeer) -> Iterator[Reading]:
    """Yield the value of each series of a peer at this moment. Call it in the peer's loop."""
    components, runtime = peer.components(), peer.runtime()
    kind = "leaf" if runtime is None else "full"
    yield Reading("build_info", 1, (VERSION, str(WIRE_VERSION), kind))
    yield Reading("start_time_seconds", peer.resources.started_at)
    yield from _one_of("peer_state", peer.state())
    yield from _counted(peer)
    yield from _disk(peer.resources)
    yield from _sinks(peer.resources.deliveries.each)
    yield from _loans(peer, runtime)
    if components is not None:
        yield from _crawl(peer, components)
    if runtime is not None:
        yield Reading("contacts", len(runtime.overlay.contacts()))
        yield Reading("refused_by_peers", runtime.key_mismatches.count)
        if runtime.begun:
            yield from _replication(runtime)


def verdict(peer: MonitoredPeer) -> CrawlVerdict:
    """Return whether the crawl is done or why it is not, as far as this peer knows."""
    components, runtime, borrower = peer.components(), peer.runtime(), peer.borrower()
    state = peer.state()
    if components is None:
        return verdict_of(state, WorkLeft())
    crawlers = peer.crawlers()
    now = peer.resources.clock.now()
    is_paused = any(PauseReason.SEEDING in crawler.pause_reasons for crawler in crawlers)
    dues = [components.frontier.next_due(), borrower.next_due() if borrower is not None else None]
    is_active = any(crawler.in_flight for crawler in crawlers) or any(due is not None and due <= now for due in dues)
    if runtime is None:
        urls = borrower.urls if borrower is not None else 0
        acknowledging = components.forwarder.unacknowledged
        return verdict_of(
            state, WorkLeft(is_paused=is_paused, is_active=is_active, pending=urls, unacknowledged=acknowledging)
        )
    pending = components.frontier.pending
    work = WorkLeft(
        has_seeds=peer.resources.activity.armed,
        is_paused=is_paused,
        is_active=is_active,
        pending=pending,
        lent=runtime.balancing.loans.lender.urls,
        unsettled=runtime.cells.unsettled + max(0, runtime.pending - pending),
        unacknowledged=runtime.unacknowledged,
    )
    return verdict_of(state, work)


def _one_of(metric: str, value: StrEnum) -> Iterator[Reading]:
    for each in type(value):
        yield Reading(metric, each is value, (each.value,))


def _counted(peer: MonitoredPeer) -> Iterator[Reading]:
    """Yield the counters of all runs of the peer in its directory."""
    counters = peer.resources.counters
    yield Reading("pages_total", counters.pages - counters.revisits, ("first",))
    yield Reading("pages_total", counters.revisits - counters.unchanged, ("changed",))
    yield Reading("pages_total", counters.unchanged, ("unchanged",))
    yield Reading("pages_total", counters.unanswered, ("unanswered",))
    yield Reading("received_bytes_total", counters.body_bytes)
    yield Reading("urls_found_total", counters.urls)
    yield Reading("urls_done_total", counters.done)
    yield from _by_reason("urls_failed_total", counters.failed)
    yield Reading("urls_retried_total", sum(counters.retried.values()))
    yield Reading("duplicates_total", counters.duplicates)
    yield Reading("links_seen_total", counters.links_seen)
    yield from _by_reason("links_left_out_total", counters.left_out)
    yield Reading("records_total", counters.records)
    yield Reading("record_errors_total", counters.record_errors)
    yield Reading("peer_messages_total", peer.messages())


def _by_reason(metric: str, counts: Mapping[str, int]) -> Iterator[Reading]:
    """Yield a series for each reason. The first reasons keep their series, so that no counter goes back."""
    names = list(counts)
    for name in names[:REASONS_MAX]:
        yield Reading(metric, counts[name], (name,))
    if rest := names[REASONS_MAX:]:
        yield Reading(metric, sum(counts[name] for name in rest), (OTHER_REASONS,))


def _disk(resources: Resources) -> Iterator[Reading]:
    config, journal = resources.config, resources.store.journal
    with suppress(OSError):  # The directory may be gone. The journal then fails at its next commit.
        database_bytes, wal_bytes = journal.file_bytes()
        yield Reading("journal_bytes", database_bytes)
        yield Reading("journal_wal_bytes", wal_bytes)
    yield Reading("journal_failed", journal.has_failed)
    with suppress(OSError):
        yield Reading("disk_free_bytes", resources.environment.free_bytes(config.data))
    yield Reading("disk_reserve_bytes", config.limits.disk_reserve_bytes)


def _sinks(deliveries: Iterable[Delivery]) -> Iterator[Reading]:
    """Yield the figures of each sink. Its label is its kind and number, as its name may contain a host."""
    numbers: Counter[str] = Counter()
    for delivery in deliveries:
        kind = delivery.work.name.kind
        numbers[kind] += 1
        labels = (f"{kind}-{numbers[kind]}",)
        with suppress(OSError):
            yield Reading("sink_lag_bytes", delivery.work.lag, labels)
        yield Reading("sink_failing", delivery.why is not None, labels)
        yield Reading("sink_refused_total", delivery.work.refused, labels)


def _crawl(peer: MonitoredPeer, components: CrawlComponents) -> Iterator[Reading]:
    runtime, borrower, crawlers = peer.runtime(), peer.borrower(), peer.crawlers()
    frontier = components.frontier
    frontiers = [frontier] if borrower is None else [frontier, borrower.frontier]
    yield from _one_of("verdict", verdict(peer))
    for reason in PauseReason:
        yield Reading("pause_reason", any(reason in each.pause_reasons for each in crawlers), (reason.value,))
    if runtime is not None:
        yield Reading("urls_pending", frontier.pending + runtime.cells.pending_closed)
        yield Reading("links_unacknowledged", runtime.unacknowledged)
    elif borrower is not None:
        yield Reading("urls_pending", borrower.urls)
        yield Reading("links_unacknowledged", components.forwarder.unacknowledged)
    yield Reading("requests_in_flight", sum(crawler.in_flight for crawler in crawlers))
    yield Reading("fetch_seconds", added(each.request_times for each in frontiers))
    yield Reading("politeness_wait_seconds", added(each.politeness_waits for each in frontiers))
    yield Reading("link_acknowledgement_seconds", components.forwarder.acknowledgement_times)
    counts = [each.site_counts(peer.resources.clock.now()) for each in frontiers]
    yield Reading("sites_active", sum(count.active for count in counts))
    yield Reading("sites_waiting", sum(count.waiting for count in counts))
    yield Reading("sites_refusing", sum(count.refusing for count in counts))


def _loans(peer: MonitoredPeer, runtime: Runtime | None) -> Iterator[Reading]:
    if (borrower := peer.borrower()) is not None:
        yield Reading("loans", borrower.loans, ("taken",))
        yield Reading("loan_urls", borrower.urls, ("taken",))
        yield Reading("loans_taken_total", borrower.taken)
        yield Reading("loan_urls_done_total", borrower.done, ("taken",))
    if runtime is not None and runtime.begun:
        lender = runtime.balancing.loans.lender
        yield Reading("loans", len(lender.sites()), ("given",))
        yield Reading("loan_urls", lender.urls, ("given",))
        yield Reading("loan_urls_done_total", lender.done, ("given",))
        yield Reading("load_level", runtime.balancing.policy.level)
        yield Reading("leaves", len(runtime.parts.leaves.rows()))


def _replication(runtime: Runtime) -> Iterator[Reading]:
    cells = runtime.cells
    holdings = cells.holdings
    yield Reading("cells_owned", len(holdings.owned))
    yield Reading("cells_open", sum(owned.open for owned in holdings.owned.values()))
    yield Reading("cells_unsettled", cells.unsettled)
    yield Reading("cells_backed_up", len(holdings.backed))
    yield Reading("copies_missing", holdings.copies_missing(len(runtime.overlay.contacts())))
    yield Reading("copies_wanted", holdings.copies)
    yield Reading("cells_syncing", cells.sync.in_progress)
    yield Reading("syncs_total", cells.sync.syncs)
    yield Reading("sync_seconds", cells.sync.times)
    yield Reading("changes_unacknowledged", cells.replicator.unacknowledged)
