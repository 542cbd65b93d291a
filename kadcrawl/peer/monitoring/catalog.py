"""The catalog of all metrics: name, kind, labels and meaning.

Names follow the conventions of Prometheus: base units, `_total` for counters, no unit in a label. No label has a URL, a
host, or a text of a site or another peer, so the number of series has a limit.

Tests: tests/peer/monitoring/test_readings.py
"""

from dataclasses import dataclass
from enum import StrEnum


class MetricKind(StrEnum):
    """The kind of a metric, by the words of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, with as many series as its labels have values."""

    name: str
    """The name in a query. A histogram adds `_bucket`, `_sum` and `_count`."""
    kind: MetricKind
    meaning: str
    labels: tuple[str, ...] = ()


def _counters(*rows: tuple[str, str] | tuple[str, str, str]) -> list[Metric]:
    return [Metric(f"kadcrawl_{row[0]}_total", MetricKind.COUNTER, row[1], tuple(row[2:])) for row in rows]


def _gauges(*rows: tuple[str, str] | tuple[str, str, str]) -> list[Metric]:
    return [Metric(f"kadcrawl_{row[0]}", MetricKind.GAUGE, row[1], tuple(row[2:])) for row in rows]


def _histograms(*rows: tuple[str, str]) -> list[Metric]:
    return [Metric(f"kadcrawl_{name}_seconds", MetricKind.HISTOGRAM, meaning) for name, meaning in rows]


GROUPS: dict[str, list[Metric]] = {
    "The peer": [
        Metric(
            "kadcrawl_build_info",
            MetricKind.GAUGE,
            "Always 1. The labels have the release, the version of the wire, and the kind of the peer, full or leaf.",
            ("version", "wire", "kind"),
        ),
        *_gauges(
            ("start_time_seconds", "Unix time at which this run of the peer began."),
            ("peer_state", "1 for the state of the peer, and 0 for each other state.", "state"),
            (
                "verdict",
                "1 for the answer of the peer whether the crawl is done or why not yet, and 0 for each other answer.",
                "verdict",
            ),
            (
                "pause_reason",
                "1 for each reason to start no request, and 0 for the other reasons.",
                "reason",
            ),
        ),
        *_histograms(("event_loop_lag", "Time by which the event loop of the process is late, once a second.")),
    ],
    "URLs and pages": [
        *_counters(
            (
                "pages",
                "Requests of pages that came to an end, by outcome: `first` and `changed` and `unchanged` visits that "
                "the server answered with any status, and `unanswered` URLs.",
                "outcome",
            ),
            ("received_bytes", "Bytes of bodies as received."),
            ("urls_found", "URLs that the peer accepted as their owner."),
            ("urls_done", "URLs that the peer finished, fetched or failed. Each visit counts."),
            ("urls_failed", "URLs that failed, by reason, with rare HTTP statuses taken together.", "reason"),
            ("urls_retried", "Done URLs that became pending again, due or by an order."),
            ("duplicates", "Pages that the peer finished twice although no visit was due."),
            ("links_seen", "Links found on pages, repeats included."),
            ("links_left_out", "Links that a limit kept from being followed, by limit, repeats included.", "limit"),
            ("records", "Lines of records.jsonl."),
            ("record_errors", "Pages whose hook or selectors failed, so that they have no records."),
        ),
        *_gauges(
            ("urls_pending", "URLs that the peer owns and that are not finished."),
            ("requests_in_flight", "Requests under way, for own and for borrowed pages."),
            ("links_unacknowledged", "Links, seeds and records on their way to other peers."),
        ),
        *_histograms(
            ("fetch", "Time of a request to a site, from its start to the end of the body."),
            ("link_acknowledgement", "Time until all links of a page were acknowledged by their owners."),
        ),
    ],
    "Politeness": [
        *_gauges(
            ("sites_active", "Sites with URLs in memory."),
            ("sites_waiting", "Active sites that may not be asked yet, for their delay or their back-off."),
            ("sites_refusing", "Active sites that refused their last requests with 429 or 503."),
        ),
        *_histograms(("politeness_wait", "Time for which a site is left alone after a request.")),
    ],
    "Replication": [
        *_gauges(
            ("cells_owned", "Cells that the peer owns."),
            ("cells_open", "Owned cells that the peer may crawl."),
            ("cells_unsettled", "Cells between two owners, as far as the peer knows: no peer may crawl them just now."),
            ("cells_backed_up", "Cells of other owners that the peer keeps a copy of."),
            (
                "copies_missing",
                "Copies of owned cells that are missing or incomplete, as far as there are peers to keep them.",
            ),
            ("copies_wanted", "Holders of each cell by the job, its owner among them."),
            ("cells_syncing", "Cells that are being synced."),
            ("changes_unacknowledged", "Changes of records on their way to backups."),
        ),
        *_counters(("syncs", "Syncs of cells that were completed in this run.")),
        *_histograms(("sync", "Time of a sync of a cell, from the request to the open cell.")),
    ],
    "Load balance": [
        *_gauges(
            ("load_level", "The load of the peer in heavy blocks, above 0 for a peer that lends."),
            ("loans", "Loans that are not over, by direction: `given` or `taken`.", "direction"),
            ("loan_urls", "URLs on loan that are not reported yet, by direction: `given` or `taken`.", "direction"),
            ("leaves", "Leaves that draw pages from this peer."),
        ),
        *_counters(
            ("loans_taken", "Loans that the peer took in this run."),
            (
                "loan_urls_done",
                "URLs on loan that were fetched in this run: by borrowers of the peer (`given`), or by the peer for "
                "its lenders (`taken`).",
                "direction",
            ),
        ),
    ],
    "The swarm": [
        *_gauges(
            ("contacts", "Other full peers that this peer is in touch with. In a small swarm these are all."),
            ("refused_by_peers", "Known peers that refuse the key of this peer."),
        ),
        *_counters(("peer_messages", "Messages sent to other peers, datagrams included.")),
    ],
    "Disk and sinks": [
        *_gauges(
            ("journal_bytes", "Size of the journal, without its WAL."),
            ("journal_wal_bytes", "Size of the write-ahead log of the journal."),
            ("journal_failed", "1 if the journal refuses all writes after a failure, otherwise 0."),
            ("disk_free_bytes", "Bytes that may still be written to the disk of the directory."),
            ("disk_reserve_bytes", "Free bytes below which the peer fetches nothing."),
            (
                "sink_lag_bytes",
                "Bytes of results that a sink lacks, by kind and number of the sink.",
                "sink",
            ),
            ("sink_failing", "1 if the last try of the sink failed, otherwise 0.", "sink"),
        ),
        *_counters(("sink_refused", "Documents that the sink will never take.", "sink")),
    ],
}
"""All metrics of kadcrawl, by topic."""

METRICS: dict[str, Metric] = {metric.name: metric for group in GROUPS.values() for metric in group}
"""All metrics of kadcrawl, by name."""
