"""The synthetic web of long crawls is the same each time, and large."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from scripts.bench_long import first_fetch, last_fetch, stages, steady
from scripts.long_web import HOSTS_MAX, INSIDE, NEAR, OUTSIDE, NumberedWeb, address


def test_a_page_is_a_function_of_its_host_and_number() -> None:
    one, two = NumberedWeb(300, 1000, 3000), NumberedWeb(300, 1000, 3000)
    assert one.page(7, 9) == two.page(7, 9) != one.page(7, 10)
    links = re.findall(rb'href="([^"]+)"', one.page(7, 9))
    assert len(links) == NEAR + INSIDE + OUTSIDE
    inside = {int(link[3:]) for link in links if link.startswith(b"/p/")}
    assert len(inside) > INSIDE
    assert all(0 <= number < 1000 for number in inside)
    assert b"http://127." in links[-1]


def test_all_pages_of_a_host_are_found_from_its_first() -> None:
    web = NumberedWeb(3, 200, 0)
    found, waiting = {0}, [0]
    while waiting:
        for link in re.findall(rb'href="/p/(\d+)"', web.page(1, waiting.pop())):
            if int(link) not in found:
                found.add(int(link))
                waiting.append(int(link))
    assert set(range(200)) == found


def test_requests_are_counted_and_so_are_repeats() -> None:
    web = NumberedWeb(3, 10, 0)
    assert [200, 200, 200, 404, 404] == [web.answer(1, path)[0] for path in (b"/", b"/p/3", b"/p/3", b"/p/10", b"/x")]
    assert (3, 1) == (web.fetched, web.twice)


def test_each_host_has_an_address_of_its_own() -> None:
    addresses = [address(host) for host in (*range(600), HOSTS_MAX - 1)]
    assert len(set(addresses)) == len(addresses)
    assert all(0 <= int(part) < 256 for one in addresses for part in one.split("."))


def test_the_last_fetch_is_that_of_the_last_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "pages.jsonl"
    assert 0.0 == last_fetch(log)
    log.write_bytes(b"")
    assert 0.0 == last_fetch(log)
    lines = [b'{"fetched_at": "1970-01-01T00:00:%02d.500Z"}\n' % second for second in (7, 9)]
    log.write_bytes(lines[0] + lines[1][:-3])
    assert 7.5 == last_fetch(log)
    log.write_bytes(b"".join(lines) * 500)
    assert 9.5 == last_fetch(log)


def test_the_first_fetch_is_the_earliest_since_the_start(tmp_path: Path) -> None:
    log = tmp_path / "pages.jsonl"
    lines = [b'{"fetched_at": "1970-01-01T00:00:%02d.500Z"}\n' % second for second in (3, 7, 12, 11)]
    log.write_bytes(b"".join(lines) + lines[0][:-3])
    assert 11.5 == first_fetch(log, len(lines[0]), 10.0), "lines of pages fetched before the start may come first"


def test_the_stages_of_a_start_are_those_of_the_last_run() -> None:
    def line(second: int, text: str) -> str:
        return f"2026-11-26 18:00:{second:02d},250 INFO kadcrawl.peer.peer {text}"

    began_at = datetime.fromisoformat("2026-11-26T18:00:10").timestamp()
    log = [line(1, "peer.opened"), line(11, "peer.opened"), line(12, "peer.begun id=1 at=2"), " a traceback", ""]
    log += [line(13, "cell.first_opened cell=7"), line(14, "peer.opened")]
    reached = {name: at - began_at for name, at in stages("\n".join(log), began_at).items()}
    assert {"opened_s": 1.25, "entered_s": 2.25, "cell_s": 3.25} == reached


@pytest.mark.parametrize(("last", "growth"), [(1.0, 0.0), (1.2, 0.2)])
def test_the_first_tenth_of_a_curve_does_not_count_as_growth(last: float, growth: float) -> None:
    costs = [9.0, *[1.0] * 6, *[last] * 3]
    curve = [{"pages": 100.0 * (at + 1) + 1, "cost": cost} for at, cost in enumerate(costs)]
    curve[0]["pages"] = 50
    assert growth == steady(curve, "cost")
