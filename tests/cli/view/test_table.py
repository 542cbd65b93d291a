"""The table of peers that status prints."""

import re

import msgspec
import pytest

from kadcrawl.cli.view.table import ROWS_SHOWN_MAX, print_rows
from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact, PeerCounters, PeerRow
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.link.wire.unresolved import still_failed


def crawling_row(number: int) -> PeerRow:
    return PeerRow(
        Contact(id_bytes(number << 140), "10.0.0.1", number), PeerState.CRAWLING, 7, 1, 60, PeerCounters(pages=5), 0, 0
    )


def test_what_is_lent_is_shown_as_soon_as_anybody_lends(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([crawling_row(1), crawling_row(2)])
    assert "loan" not in capsys.readouterr().out
    loans = [{"lent": 40}, {"borrowed": 40}, {"lent": 3, "borrowed": 2}, {}]
    print_rows([msgspec.structs.replace(crawling_row(1 + number), **loan) for number, loan in enumerate(loans)])
    head, *peers = (re.split(" {2,}", line.strip()) for line in capsys.readouterr().out.splitlines())
    at = head.index("on loan")
    assert ["pending", "in flight"] == [head[at - 1], head[at + 1]]
    assert [["7", "40 out", "1"], ["7", "40 in", "1"], ["7", "3 out, 2 in", "1"], ["7", "1", "0"]] == [
        line[at - 1 : at + 2] for line in peers
    ]


def test_what_waits_for_sinks_is_shown_as_soon_as_anything_does(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([crawling_row(1)])
    assert "sinks" not in capsys.readouterr().out
    print_rows(
        [msgspec.structs.replace(crawling_row(1 + number), lag=size) for number, size in enumerate((0, 1300, 2**24))]
    )
    head, *peers = capsys.readouterr().out.splitlines()
    assert head.strip().endswith("for sinks")
    assert [" 0.0 kB", " 1.3 kB", "16.8 MB"] == [line.rstrip()[-7:] for line in peers]


@pytest.mark.parametrize("lent", [0, 1])
def test_of_many_peers_some_are_shown_and_the_others_counted(capsys: pytest.CaptureFixture[str], lent: int) -> None:
    print_rows([msgspec.structs.replace(crawling_row(number + 1), lent=lent) for number in range(ROWS_SHOWN_MAX + 3)])
    lines = capsys.readouterr().out.splitlines()
    assert 1 + ROWS_SHOWN_MAX + 1 == len(lines)
    assert lines[-1].strip() == "... and 3 more"


@pytest.mark.parametrize(
    ("counters", "shown"),
    [
        ([PeerCounters(failed={"http_404": 48}), PeerCounters(retried={"http_404": 24})], ["24", "0"]),
        ([PeerCounters(retried={"http_404": 1, "": 3}), PeerCounters(failed={"http_404": 1, "dns": 2})], ["0", "2"]),
        ([PeerCounters(failed={"dns": 3}, retried={"dns": 3}), PeerCounters(failed={"dns": 2})], ["0", "2"]),
        ([PeerCounters(failed={"dns": 1}, retried={"dns": 2}), PeerCounters(failed={"dns": 2})], ["0", "1"]),
    ],
)
def test_the_failed_urls_of_peers_add_up_although_another_peer_retried_them(
    capsys: pytest.CaptureFixture[str], counters: list[PeerCounters], shown: list[str]
) -> None:
    print_rows([msgspec.structs.replace(crawling_row(1 + number), counters=one) for number, one in enumerate(counters)])
    head, *peers = (re.split(" {2,}", line.strip()) for line in capsys.readouterr().out.splitlines())
    at = head.index("failed")
    assert shown == [line[at] for line in peers]
    assert sum(map(int, shown)) == sum(still_failed(counters).values())
