"""The lines a crawl prints while nobody looks: as often as there is news, and seldom when there is none."""

import time

import pytest

from kadcrawl.cli.progress import LINE_INTERVAL_S, SAME_INTERVAL_S, Progress
from kadcrawl.keys import id_bytes
from kadcrawl.link.messages import Contact, Counters, PeerRow


def test_what_has_not_changed_is_said_seldom_and_what_has_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def said(pages: int, until: float) -> list[str]:
        """Return the lines of the seconds until then, in which the crawl has so many pages."""
        nonlocal now
        while now < until:
            shown.update([PeerRow(Contact(id_bytes(1), "10.0.0.1", 1), "idle", 3, 0, 1, Counters(pages=pages), 0, 0)])
            now += 1.0
        return capsys.readouterr().err.splitlines()

    shown = Progress("start")
    shown._table = None
    first, again = said(5, now + SAME_INTERVAL_S + LINE_INTERVAL_S + 1.0)
    assert first == "start: 5 pages (0.0/s), 3 pending, 0 failed, 1 peer, 0:00"
    assert again == "start: 5 pages (0.0/s), 3 pending, 0 failed, 1 peer, 5:02"
    assert 1 == len(said(6, now + 50.0))
    busy = [line for pages in range(7, 17) for line in said(pages, now + 1.0)]
    assert 10 / LINE_INTERVAL_S == len(busy)
