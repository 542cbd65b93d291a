"""`kadcrawl queue` and `site ls` show what is pending, in words and as JSON."""

import json
from pathlib import Path

from kadcrawl.cli.view.queue import as_json, order_of, queue_lines, site_lines
from kadcrawl.link.wire.given_order import GivenOrder
from kadcrawl.link.wire.queue_messages import Queue, QueueCounts, QueuedSite, QueuedUrl
from kadcrawl.peer.queue_status import QueueStatus, together
from tests.support.sites.web import Web, html
from tests.support.swarm.command import interrupted, joinable, kadcrawl

ORDERS = [
    GivenOrder("pause", "a.example", 1.0, 0.0, "00" * 20, "ann"),
    GivenOrder("delay", "*.example", 2.5, 0.0, "00" * 20, "ann"),
    GivenOrder("exclude", "b.example", 0.0, 0.0, "00" * 20, "ann"),
]
COUNTS = QueueCounts(
    *(1_234, 3, [1, 0, 1_233], [1_000, 0, 0, 0, 0, 234]),
    [QueuedSite("a.example", 1_000, bytes(20), 1, 200, 1.0, 0.25, 0), QueuedSite("b.example", 200, bytes(20), 2)],
    [QueuedUrl("http://a.example/", 1, 0, 0.0), QueuedUrl("http://a.example/b", 2, 1, 90.0)],
)
QUEUE = QueueStatus.of(Queue(COUNTS, 1, 1))


def test_a_queue_reads_as_lines() -> None:
    assert [
        "1,234 URLs pending of 3 sites",
        "by depth  0: 1, 2: 1,233",
        "by age    up to 1 min: 1,000, older: 234",
        "depth 1  http://a.example/",
        "depth 2, try 2, not before 2 min  http://a.example/b",
    ] == queue_lines(QUEUE)
    assert ["0 URLs pending of 0 sites"] == queue_lines(QueueStatus.of(Queue(QueueCounts(), 0, 0)))


def test_sites_stand_in_a_table_with_their_orders() -> None:
    head, first, second, others, missing = site_lines(QUEUE, ORDERS)
    assert ["site", "pending", "status", "delay", "next", "in", "owner", "order"] == head.split()
    assert ["a.example", "1,000", "200", "1", "s", "0.2", "s", "00000000"] == first.split()[:8]
    assert first.endswith("paused, slow: 2.5 s")
    assert second.endswith("00000000 and 1 more  included, slow: 2.5 s")
    assert ("... and 1 more", "2 parts of the swarm did not answer: their URLs are missing") == (others, missing)
    assert order_of("other.test", ORDERS) is None


def test_several_sites_have_a_place_each() -> None:
    both = together([QUEUE, QUEUE])
    assert (2_468, 4, 4) == (both.pending, len(both.top), len(both.next))


def test_json_has_the_figures_and_the_orders() -> None:
    read = json.loads(as_json(QUEUE, ORDERS))
    assert [1_234, {"0": 1, "2": 1233}, [60, 1000]] == [read["pending"], read["by_depth"], read["by_age"][0]]
    assert ["paused, slow: 2.5 s", "ann"] == [read["top"][0]["order"], read["orders"][0]["user"]]


async def test_a_command_shows_the_queue_of_a_running_swarm(tmp_path: Path) -> None:
    async with Web(2) as web:
        web.fallback = lambda request: html()
        data, name = str(tmp_path / "one"), web.url("/", 1)[7:-1]
        seeds = [web.url(f"/{page}", number) for number, count in ((0, 1), (1, 4)) for page in range(count)]
        peer = await joinable(*seeds, "--delay", "30", data=tmp_path / "one")
        assert 0 == (await kadcrawl("pause", "--data", data)).code
        one = await kadcrawl("queue", name, "--top", "2", "--data", data)
        assert one.code == 0
        by_url = await kadcrawl("queue", f"http://{name}/3", "--top", "2", "--data", data)
        assert 2 == by_url.out.count(f"depth 0  http://{name}/"), by_url
        assert " pending of 1 site\n" in one.out
        assert 2 == one.out.count(f"depth 0  http://{name}/")
        whole = json.loads((await kadcrawl("queue", "--json", "--data", data)).out)
        assert name == whole["top"][0]["site"]
        listed = await kadcrawl("site", "ls", name, "--data", data)
        assert listed.out.startswith("no order stands\nsite "), listed
        wrong = await kadcrawl("queue", "*.example.org", "--data", data)
        assert (2, True) == (wrong.code, "one site is counted at a time" in wrong.err)
        assert (await interrupted(peer)).code == 11
