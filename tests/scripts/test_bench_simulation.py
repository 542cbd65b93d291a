"""The benchmark of the simulator divides the cost of two commands by their peers and seeds."""

import json
from pathlib import Path

import pytest

from scripts import bench_simulation
from scripts.bench_simulation import WorldError, measure
from scripts.measure import Cost


def test_memory_is_divided_by_peers_and_seeds_by_cpu_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(command: list[str], output: Path) -> Cost:
        Path(command[-1]).write_text(json.dumps({"messages": 7}))
        return Cost(0, 90.0, 20.0, 300_000_000) if "big" in command else Cost(1, 90.0, 4.0, 1)

    monkeypatch.setattr(bench_simulation, "cost_of", ran)
    found = measure(200, 1_000, 6)
    assert (1.5, 20.0, 7, 1.5) == (found.mb_a_peer, found.swarm_cpu_s, found.messages, found.seeds_a_cpu_s)


def test_a_simulation_without_figures_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(command: list[str], output: Path) -> Cost:
        output.write_text("no room")
        return Cost(2, 1.0, 1.0, 1)

    monkeypatch.setattr(bench_simulation, "cost_of", failed)
    with pytest.raises(WorldError, match="sim big --peers 2 --pages 3 ended with 2: no room"):
        measure(2, 3, 1)
