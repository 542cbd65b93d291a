"""The lines a crawl prints while nobody looks: as often as there is news, and seldom when there is none."""

import errno
import sys
import time

import pytest
from msgspec.structs import replace

from kadcrawl.cli.view import progress
from kadcrawl.cli.view.live import draw
from kadcrawl.cli.view.live.draw import LiveView
from kadcrawl.cli.view.live.expectation import MORE_SITES_AFTER_S, Expectation
from kadcrawl.cli.view.live.sites import SiteLine, SiteReport
from kadcrawl.cli.view.progress import LINE_INTERVAL_S, SAME_INTERVAL_S, SITES_INTERVAL_PLAIN_S, Progress
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import LEAF_PREFIX, PeerState, state_text
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits


def test_what_has_not_changed_is_said_seldom_and_what_has_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def said(pages: int, until: float) -> list[str]:
        """Return the lines of the seconds until then, in which the crawl has so many pages."""
        nonlocal now
        while now < until:
            shown.update(
                [PeerRow(Contact(id_bytes(1), "10.0.0.1", 1), PeerState.IDLE, 3, 0, 1, PeerCounters(pages=pages), 0, 0)]
            )
            now += 1.0
        return capsys.readouterr().err.splitlines()

    shown = Progress("start")
    first, again = said(5, now + SAME_INTERVAL_S + LINE_INTERVAL_S + 1.0)
    assert first == "start: 5 pages (0.0/s), 3 pending, 0 failed, 1 peer, 0:00"
    assert again == "start: 5 pages (0.0/s), 3 pending, 0 failed, 1 peer, 5:02"
    assert 1 == len(said(6, now + 50.0))
    busy = [line for pages in range(7, 17) for line in said(pages, now + 1.0)]
    assert 10 / LINE_INTERVAL_S == len(busy)


def test_the_rate_is_of_what_is_fetched_meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Earlier pages of a newcomer or a returned peer do not count, and a departed peer takes none away."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    shown = Progress("start")

    def rate(*pages: int) -> str:
        nonlocal now
        now += LINE_INTERVAL_S
        contacts = [Contact(id_bytes(number), "10.0.0.1", 1) for number, _ in enumerate(pages, 1)]
        counted = zip(contacts, pages, strict=True)
        shown.update(
            [PeerRow(one, PeerState.IDLE, 3, 0, 1, PeerCounters(pages=count), 0, 0) for one, count in counted if count]
        )
        return capsys.readouterr().err.partition("(")[2].partition("/s")[0]

    assert [rate(100), rate(104), rate(108)] == ["0.0", "2.0", "2.0"]
    assert rate(112, 5000) == "2.0", "one has come"
    assert rate(0, 5004) == "2.0", "one has gone"
    assert rate(116, 5008) == "2.0", "and is back"


def rows_in_states(*texts: str) -> list[PeerRow]:
    """Return rows of peers whose states have these words. Two peers refuse each of them."""
    states = {state_text(state, 2): state for state in PeerState}
    return [
        PeerRow(
            Contact(id_bytes(number), "10.0.0.1", number),
            states[text.removeprefix(LEAF_PREFIX)],
            *(3, 0, 1, PeerCounters(), 0, 0),
            refused_by=2,
            hosted_leaf=text.startswith(LEAF_PREFIX),
        )
        for number, text in enumerate(texts, 1)
    ]


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (("crawling", "idle"), "2 peers, 0:00"),
        (("paused", "paused"), "2 peers, paused, 0:00"),
        (("paused", "leaf: paused", "died", "left", "leaf: left"), "2 peers, paused, 0:00"),
        (("crawling", "paused: disk full"), "2 peers, 1 paused: disk full, 0:00"),
        (("waiting for proxies", "waiting for proxies", "crawling"), "3 peers, 2 waiting for proxies, 0:00"),
        (("leaf: looking for a peer",), "1 peer, looking for a peer, 0:00"),
        (("refused by 2 known peers: key changed?",), "1 peer, refused by 2 known peers: key changed?, 0:00"),
    ],
)
def test_a_line_says_that_peers_wait(states: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Progress("start").update(rows_in_states(*states))
    assert capsys.readouterr().err.endswith(f"0 failed, {said}\n")


def test_a_pause_is_news_and_what_helps_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    shown = Progress("start")
    for state in ("crawling", "paused: disk full", "paused: disk full", "crawling"):
        shown.update(rows_in_states(state))
        now += LINE_INTERVAL_S
    said = capsys.readouterr().err.splitlines()
    assert any("64 MiB left on its disk, or its own disk_reserve_bytes, a peer" in line for line in said)
    assert ["1 peer", "less than 64 MiB left on its disk", "paused: disk full", "1 peer"] == [
        next(what for what in ("less than 64 MiB left on its disk", "paused: disk full", "1 peer") if what in line)
        for line in said
    ]


def test_it_is_said_once_how_a_paused_swarm_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """A person who starts a peer again may not know that somebody paused the swarm before."""
    shown = Progress("start")
    for _ in range(3):
        shown.update(rows_in_states("paused", "crawling"))
    assert 1 == capsys.readouterr().err.count("a paused swarm fetches nothing until kadcrawl resume")


def test_peers_that_wait_for_seeds_are_paused_by_no_person(capsys: pytest.CaptureFixture[str]) -> None:
    Progress("crawl").update(rows_in_states("paused", "paused"), reads_seeds=True)
    said = capsys.readouterr().err
    assert "2 peers, reading seeds, 0:00" in said
    assert "paused" not in said


def test_what_to_expect_is_said_once_and_each_correction_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    job = Job(scope="any")
    shown = Progress("crawl")
    for _ in range(2):  # All peers died, and begin anew.
        shown.expect(job, Expectation(job, ("https://example.org/",), Limits()))
    assert [
        "1 site at 1 request/s: more peers do not make this faster; about 20 min per 1,000 pages",
        "links may lead to more sites (--scope any), and each adds its own pace",
    ] == capsys.readouterr().err.splitlines()
    sites = SiteReport([SiteLine("slow.example", 5, 10.0, 0.0, 0.1)], 60)
    said = []
    for _ in range(100):
        shown.update(rows_in_states("crawling"), sites)
        now += MORE_SITES_AFTER_S / 10
        said += [line for line in capsys.readouterr().err.splitlines() if not line.startswith("crawl: ")]
    assert [
        "robots.txt of slow.example asks for 10 s between two requests: about 2 h 50 min per 1,000 pages of this site",
        "60 sites have URLs left by now, at 1 request/s each: more peers do not make this faster; at best about 20 s "
        "per 1,000 pages",
    ] == said


def test_sites_are_looked_at_seldom_without_a_terminal() -> None:
    with Progress("crawl") as shown:
        assert SITES_INTERVAL_PLAIN_S == shown.sites_interval_s


@pytest.mark.parametrize(("count", "said"), [(1, "1 site paused by order"), (3, "3 sites paused by order")])
def test_a_line_says_that_sites_are_paused(count: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Progress("start").update([replace(row, paused_sites=count) for row in rows_in_states("crawling", "crawling")])
    assert f"2 peers, 0:00, {said}" in capsys.readouterr().err


def test_a_terminal_that_is_gone_ends_the_drawing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    class Gone(LiveView):
        def start(self) -> None:
            drawn.append("start")

        def update(self, picture: object) -> None:
            drawn.append("update")
            raise OSError(errno.EIO, "Input/output error")

        def stop(self) -> None:
            drawn.append("stop")
            raise OSError(errno.EIO, "Input/output error")

    silenced: list[object] = []
    monkeypatch.setattr(draw, "LiveView", Gone)
    monkeypatch.setattr(progress, "silence", silenced.append)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Progress("start") as shown:
        for _ in range(2):
            shown.update([])
            shown.say("a sentence")
    assert drawn == ["start", "update", "stop"]
    assert silenced == [sys.stderr]
