"""`Exposition` writes the metrics of one peer as text, in the format that the reader asks for.

It has a registry of its own, so nothing is shared with an application that embeds the peer and uses prometheus_client
itself. Importing this module loads prometheus_client.

Tests: tests/peer/monitoring/test_readings.py
"""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from kadcrawl.peer.monitoring.catalog import METRICS, Metric, MetricKind
from kadcrawl.peer.monitoring.readings import Reading
from kadcrawl.system.duration_histogram import DurationHistogram

PREFIX = "kadcrawl_"

_Families = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class PeerCollector(Collector):
    """Collects the metrics of one peer when somebody asks."""

    def __init__(self, read: Callable[[], Iterable[Reading]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        """Yield each metric of the catalog that has a reading now."""
        families: dict[str, _Families] = {}
        for reading in self._read():
            name = PREFIX + reading.metric
            family = families.get(name) or families.setdefault(name, _family(METRICS[name]))
            if isinstance(family, HistogramMetricFamily):
                assert isinstance(reading.value, DurationHistogram), f"{name} is a histogram"
                family.add_metric(reading.labels, _buckets(reading.value), reading.value.sum_s)
            else:
                family.add_metric(reading.labels, cast("float", reading.value))
        yield from families.values()


class Exposition:
    """The metrics of one peer and of its process as text."""

    def __init__(self, read: Callable[[], Iterable[Reading]]) -> None:
        """`read` yields the values of all series."""
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(PeerCollector(read))
        ProcessCollector(registry=self._registry)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the text and its media type, for a reader with this Accept header."""
        encoder, media_type = choose_encoder(accept)
        return encoder(self._registry), media_type


def _family(metric: Metric) -> _Families:
    if metric.kind is MetricKind.COUNTER:
        return CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    if metric.kind is MetricKind.GAUGE:
        return GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    return HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)


def _buckets(histogram: DurationHistogram) -> list[tuple[str, float]]:
    bounds = [*(repr(float(bound)) for bound in histogram.bounds_s), "+Inf"]
    return list(zip(bounds, histogram.cumulative(), strict=True))
