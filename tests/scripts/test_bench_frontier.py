"""The benchmark of the frontier measures URLs that wait, and its claims can fail."""

from dataclasses import asdict, replace
from pathlib import Path

from scripts.bench_frontier import BYTES_MOST, FLAT_MOST, FrontierCost, NumberedUrls, claims, cost, parts_of

FINE = FrontierCost(pending=10, sites=1, accept_us=1, known_us=1, finish_us=1, bytes_per_url=100)


async def test_a_store_is_measured(tmp_path: Path) -> None:
    measured = await cost(tmp_path, 4_000, 20)
    figures = asdict(measured)
    assert min(getattr(measured, name) for name in figures if name.endswith("_us")) > 0
    assert measured.accept_sql_us < measured.accept_commit_us
    assert measured.finish_sql_us < measured.finish_commit_us
    assert 80 < measured.bytes_per_url < 200


def test_each_part_has_a_row() -> None:
    table = parts_of([replace(FINE, finish_line_us=7.25)])
    assert 5 == table.row_count
    assert ["0.0", "0.0", "0.0", "7.2", "1.0"] == [*table.columns[2].cells]


def test_sites_are_equally_large() -> None:
    urls = NumberedUrls(3)
    assert 4 == sum(urls.at(number)[1] == urls.at(0)[1] for number in range(12))
    assert 12 == len({urls.at(number)[0] for number in range(12)})


def test_claims_can_fail() -> None:
    assert all(holds for _, holds in claims([FINE, FINE]))
    for wrong in (
        replace(FINE, bytes_per_url=BYTES_MOST + 1),
        replace(FINE, accept_us=FLAT_MOST + 0.01),
        replace(FINE, finish_us=FLAT_MOST + 0.01),
    ):
        assert 1 == sum(not holds for _, holds in claims([FINE, wrong]))
