"""Test the document over time: changes, rates, peers that fall silent, and the estimated end."""

import json
from typing import Any

import pytest

from kadcrawl.web.live_document import LOST_MAX, LOST_SHOWN_S, LiveDocument, end_in_s
from kadcrawl.web.merge_patch import patched


def gathered(*, pages: int = 0, peers: str = "ab") -> dict[str, Any]:
    """Return a look at a swarm whose peers have fetched this number of pages each."""
    return {
        "me": "a",
        "crawl": {"found": pages * 3, "done": pages * 2, "pending": pages, "name": None},
        "peers": {name: {"pages": pages, "alive": True, "heard_s": 0, "state": "crawling"} for name in peers},
    }


def read(event: bytes) -> tuple[str, str, dict[str, Any]]:
    """Return the id, name and data of an event."""
    number, name, data, *rest = event.decode().split("\n")
    assert ["", ""] == rest
    return number.removeprefix("id: "), name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_the_changes_make_the_same_document_as_the_whole() -> None:
    live = LiveDocument("r")
    live.take(gathered(), 100.0, 1.0)
    _, name, document = read(live.state_event())
    assert "state" == name
    for second in range(1, 5):
        live.take(gathered(pages=second * second, peers="abc"[: second % 3 + 1]), 100.0 + second, 1.0)
    for event in live.events_after(0):
        document = patched(document, read(event)[2])
    _, _, whole = read(live.state_event())
    tail, series = document.pop("series_tail"), whole.pop("series")
    document.pop("series")
    assert document == whole
    assert tail["t"] == series["t"][-1]
    assert tail["rates"] == {name: rates[-1] for name, rates in series["rates"].items() if name in tail["rates"]}


def test_an_id_of_another_run_or_without_sense_is_unknown() -> None:
    live = LiveDocument("run")
    assert [7, -1, -1, -1, -1, -1, -1] == [
        live.number_in(said) for said in ("run-7", "ruin-7", "run--7", "run-", None, "run-\u0663", "run-" + "1" * 200)
    ]


def test_a_peer_that_falls_silent_is_shown_as_such_for_a_while() -> None:
    live = LiveDocument("r")
    live.take(gathered(pages=4), 100.0, 1.0)
    live.take(gathered(pages=5, peers="a"), 103.0, 1.0)
    _, _, document = read(live.state_event())
    assert (False, 3, 4) == tuple(document["peers"]["b"][name] for name in ("alive", "heard_s", "pages"))
    live.take(gathered(pages=6), 104.0, 1.0)
    assert read(live.state_event())[2]["peers"]["b"]["alive"]
    live.take(gathered(pages=7, peers="a"), 104.0 + LOST_SHOWN_S, 1.0)
    assert {"a"} == set(read(live.state_event())[2]["peers"])


def test_peers_that_fell_silent_have_a_limit() -> None:
    live = LiveDocument("r")
    many = gathered()
    many["peers"] = {str(number): dict(many["peers"]["a"]) for number in range(LOST_MAX + 50)}
    live.take(many, 100.0, 1.0)
    live.take(gathered(), 101.0, 1.0)
    assert LOST_MAX + 2 == live.peers


def test_the_rate_of_the_crawl_is_that_of_its_peers() -> None:
    live = LiveDocument("r")
    for second in range(60):
        live.take(gathered(pages=second * 5), 100.0 + second, 1.0)
    document = read(live.state_event())[2]
    assert [5, 5, 10] == [
        pytest.approx(rate, abs=0.1)
        for rate in (*(peer["pages_per_s"] for peer in document["peers"].values()), document["crawl"]["pages_per_s"])
    ]


def test_the_end_is_told_only_once_it_can_be_known() -> None:
    assert [None, None, None, 10.0, 100.0, None] == [
        end_in_s(0, 0.0, 10.0),
        end_in_s(100, 0.0, 0.0),
        end_in_s(100, 5.0, 10.0),
        end_in_s(100, 0.0, 10.0),
        end_in_s(800, 2.0, 10.0),
        end_in_s(10**12, 0.0, 1.0),
    ]
