"""The synthetic web of long crawls is the same each time, and large."""

import re
from pathlib import Path

import pytest

from scripts.bench_long import last_fetch, steady
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


@pytest.mark.parametrize(("last", "growth"), [(1.0, 0.0), (1.2, 0.2)])
def test_the_first_tenth_of_a_curve_does_not_count_as_growth(last: float, growth: float) -> None:
    costs = [9.0, *[1.0] * 6, *[last] * 3]
    curve = [{"pages": 100.0 * (at + 1) + 1, "cost": cost} for at, cost in enumerate(costs)]
    curve[0]["pages"] = 50
    assert growth == steady(curve, "cost")
