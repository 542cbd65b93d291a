"""Test the alerts and the dashboard: each metric is there, each alert fires when it should and is in the run book."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.monitoring.catalog import METRICS, MetricKind
from kadcrawl.peer.monitoring.verdict import CrawlVerdict
from tests.support.cases import cases
from tests.support.monitored import promtool

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/monitoring"
ALERTS = [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
RUNBOOK = (ROOT / "docs/how-to/runbook.md").read_text()
OF_PROMETHEUS = {
    "up",
    "process_open_fds",
    "process_max_fds",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
}
"""Metrics of Prometheus itself, and of prometheus-client for the process."""
OF_TARGET = {"job", "instance", "le"}
"""Labels that Prometheus adds, and the label of buckets."""
_SELECTOR = re.compile(r"\b((?:kadcrawl|process)_[a-z_]+|up)\b(?:\{([^}]*)\})?")


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield (place, query) of each query of the alerts and the dashboard."""
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def series_names() -> dict[str, set[str]]:
    """Return the labels of each series that a peer exports."""
    named: dict[str, set[str]] = {}
    for metric in METRICS.values():
        ends = ("_bucket", "_sum", "_count") if metric.kind is MetricKind.HISTOGRAM else ("",)
        named |= {metric.name + end: {*metric.labels} for end in ends}
    return named | {name: set() for name in OF_PROMETHEUS}


@cases(("place", "query"), [*expressions()])
def test_a_query_uses_metrics_and_labels_that_a_peer_has(place: str, query: str) -> None:
    known = series_names()
    used = _SELECTOR.findall(query)
    assert used, place
    for name, selector in used:
        assert name in known, place
        assert {*re.findall(r"([a-z_]+)(?:=~|!=|!~|=)", selector)} <= known[name] | OF_TARGET
    labels = {label for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", query) for label in group.split(", ")}
    assert labels <= OF_TARGET.union(*(known[name] for name, _ in used))


@pytest.mark.parametrize(("label", "values"), [("verdict", CrawlVerdict), ("state", PeerState)])
def test_a_query_names_only_values_that_there_are(label: str, values: type[CrawlVerdict] | type[PeerState]) -> None:
    found = {
        value
        for _, query in expressions()
        for text in re.findall(rf'\b{label}=~?"([^"]*)"', query)
        for value in text.split("|")
    }
    assert found
    assert found <= {each.value for each in values}


async def test_promtool_takes_the_alerts_and_the_configuration() -> None:
    for command, file in (("rules", "alerts.yaml"), ("config", "prometheus.yaml")):
        code, said = await promtool("check", command, str(FOLDER / file))
        assert 0 == code, said
    assert f"SUCCESS: {len(ALERTS)} rules found" in (await promtool("check", "rules", str(FOLDER / "alerts.yaml")))[1]


async def test_each_alert_fires_when_it_should_and_rests_otherwise() -> None:
    worlds = yaml.safe_load((FOLDER / "alerts.test.yaml").read_text())["tests"]
    expected = [f"{rule['alert']} {what}" for rule in ALERTS for what in ("fires", "rests")]
    assert expected == [world["name"] for world in worlds]
    code, said = await promtool("test", "rules", str(FOLDER / "alerts.test.yaml"))
    assert 0 == code, said


async def test_promtool_takes_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"test:query_{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, (_, query) in enumerate(expressions())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    code, said = await promtool("check", "rules", str(file))
    assert 0 == code, said


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_is_in_the_run_book(rule: dict[str, Any]) -> None:
    address = f"https://github.com/kadcrawl/kadcrawl/blob/main/docs/how-to/runbook.md#{rule['alert'].lower()}"
    assert address == rule["annotations"]["runbook_url"]
    section = re.search(rf"^## {rule['alert']}\n\n(.*?)(?=^## |\Z)", RUNBOOK, re.M | re.S)
    assert section is not None
    assert section[1].startswith("**Means**: ")
    assert "\n**Do**: " in section[1]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert {"summary", "description", "runbook_url"} == rule["annotations"].keys()


def test_the_run_book_has_no_alert_that_is_not_there() -> None:
    assert [rule["alert"] for rule in ALERTS] == re.findall(r"^## (Kadcrawl\w+)$", RUNBOOK, re.M)


def test_the_panels_of_the_dashboard_stand_side_by_side_and_say_what_they_show() -> None:
    every = DASHBOARD["panels"]
    assert len(every) == len({panel["id"] for panel in every})
    assert len(panels()) == len({panel["title"] for panel in panels()})
    taken = Counter(
        (x, y)
        for at in (panel["gridPos"] for panel in every)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    )
    assert {1} == set(taken.values())
    assert {*range(24)} == {x for x, _ in taken}
    for panel in panels():
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert target["legendFormat"]
            assert "${datasource}" == target["datasource"]["uid"]
            assert 'job="$job"' in target["expr"]
    assert ["datasource", "job", "peer"] == [variable["name"] for variable in DASHBOARD["templating"]["list"]]
