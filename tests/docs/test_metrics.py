"""Test that the page of metrics has each metric, with a sentence, and that names keep to the conventions."""

import re
from pathlib import Path

from kadcrawl.peer.monitoring.catalog import METRICS, Metric, MetricKind
from kadcrawl.peer.monitoring.verdict import CrawlVerdict
from scripts.docs.metrics import PAGE, generate
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
HOW_TO = ROOT / "docs/how-to/monitor.md"
MADE_BY_PROMETHEUS = ("up",)


def test_the_page_has_every_metric_and_verdict() -> None:
    text = generate(ROOT)[PAGE]
    rows = re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)
    assert [*METRICS, *(verdict.value for verdict in CrawlVerdict)] == rows


@cases("metric", METRICS.values())
def test_names_keep_to_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"kadcrawl_[a-z]+(_[a-z]+)*", metric.name)
    assert (metric.kind is MetricKind.COUNTER) == metric.name.endswith("_total")
    assert metric.kind is not MetricKind.HISTOGRAM or metric.name.endswith("_seconds")
    assert not re.search(r"_(ms|millis|minutes|kb|mb|kilobytes)(_|$)", metric.name)
    assert metric.meaning.endswith(".")
    assert len(metric.labels) <= 3


def test_the_how_to_names_only_metrics_that_are_there() -> None:
    names = set(re.findall(r"\bkadcrawl_[a-z_]+", HOW_TO.read_text()))
    assert names
    known = {name + end for name in METRICS for end in ("", "_bucket", "_sum", "_count")}
    assert set() == names - known
