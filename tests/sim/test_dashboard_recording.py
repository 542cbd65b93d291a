"""A recording has what one peer of a simulated swarm gathers while others join, leave, die and lend."""

from pathlib import Path

import pytest

from sim.dashboard_recording import read_recording, record

pytestmark = pytest.mark.worlds


def test_a_recording_has_the_swarm_look_by_look(tmp_path: Path) -> None:
    record(20).write(tmp_path / "looks.json")
    looks = read_recording(tmp_path / "looks.json")
    assert len(looks) >= 4
    assert [look.at for look in looks] == sorted({look.at for look in looks})
    assert [look.document["crawl"]["pages"] for look in looks] == sorted(
        look.document["crawl"]["pages"] for look in looks
    )
    last = looks[-1].document
    # Two came, two left and two died.
    assert len(last["peers"]) == 18
    said = [event["kind"] for event in last["events"].values()]
    assert 2 == said.count("peer.joined")
    assert 2 == said.count("peer.left")
    assert 2 == said.count("peer.silent")
    moves = last["moves"].values()
    assert {"cells", "loan"} == {move["kind"] for move in moves}
    assert all(move["from"] != move["to"] for move in moves), "each peer tells its own moves alone"
