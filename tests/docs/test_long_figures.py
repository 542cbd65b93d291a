"""The tables and the picture of long crawls say what was measured."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from scripts.docs.figures import Kept
from scripts.docs.long_figures import (
    LONGEST,
    PANELS,
    PICTURE,
    SHORT,
    bench_long,
    bench_longest,
    generate,
    picture,
    soak,
)

CURVE = [
    {
        "pages": 1000 * n, "known": 20_000 * n, "cpu_s_per_1000": 1.0 + n / 100, "rss_mb": 100 + n, "wal_mb": 17.0,
        "journal_bytes_per_url": 300 - n, "seconds": 10 * n,
    }
    for n in range(1, 21)
]  # fmt: skip
LONG = {
    "hosts": 10,
    "host_pages": 1000,
    "twice": 3,
    "curve": CURVE,
    "curve alone": CURVE[:2],
    "stop": [{"seconds": 1.26}],
    "alone": [{"seconds": 1.5, "cpu_s": 0.9}],
    "in a swarm": [{"seconds": 2.5, "cpu_s": 0.8}, {"seconds": 2.6, "cpu_s": 0.7}],
}
SOAK = {
    "minutes": 5.0, "seed": 2, "pages": 800, "fetched": 800, "twice": 1, "events": {"killed": 3, "frozen": 2},
    "processes": 11, "rss_mb": 90.0, "files": 60, "threads": 9, "wal_mb": 12.0, "journal_mb": 1.0, "faults": [],
    "growths": [{"rss_mb": 1.5, "files": 2, "threads": -1}, {"rss_mb": -2.0, "files": 4, "threads": 0}],
}  # fmt: skip


def kept(directory: Path, name: str, figures: Any) -> Kept:
    meta = {"command": "python -m it", "date": "2026-01-02", "version": "0", "python": "3.11.7", "cores": 2}
    (directory / f"{name}.json").write_text(json.dumps({**meta, "figures": figures}))
    return Kept(directory)


def test_the_table_of_a_long_crawl_has_its_end_and_all_restarts(tmp_path: Path) -> None:
    text = bench_long(kept(tmp_path, "bench-long", LONG))
    assert "20,000 pages by two peers, of a web of 10,000 pages. 3 were fetched twice." in text
    assert "| 20,000 | 400,000 | 1.20 | 120 | 17.0 | 280 |" in text
    assert "| first page after `kill -9`, beside the other peer | 2.5, 2.6 | 0.8, 0.7 |" in text


def test_the_stages_of_a_restart_are_shown_where_they_were_measured(tmp_path: Path) -> None:
    staged = {**LONG, "alone": [{"seconds": 1.5, "cpu_s": 0.9, "opened_s": 0.4, "request_s": 0.7}] * 2}
    text = bench_long(kept(tmp_path, "bench-long", staged))
    assert "| journal open after `kill -9`, alone | 0.4, 0.4 |  |" in text
    assert "| first request after `kill -9`, alone | 0.7, 0.7 |  |" in text
    assert "in a swarm |" not in text


def test_the_table_of_a_soak_has_the_largest_growth(tmp_path: Path) -> None:
    text = soak(kept(tmp_path, "soak", SOAK))
    assert "| faults | 2 frozen, 3 killed |" in text
    assert "| most growth of a process, from its first third to its last | +1.5 MB, +4, +0 |" in text


def test_the_picture_has_a_curve_for_each_figure(tmp_path: Path) -> None:
    drawn = ElementTree.fromstring(picture(CURVE))
    lines = drawn.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert [len(CURVE)] * len(PANELS) == [len(line.attrib["points"].split()) for line in lines]
    assert {} == generate(tmp_path)


def test_the_picture_is_of_the_longest_crawl(tmp_path: Path) -> None:
    figures = tmp_path / "docs/figures"
    figures.mkdir(parents=True)
    kept(figures, SHORT, LONG)
    assert {PICTURE: picture(CURVE)} == generate(tmp_path)
    longest = kept(figures, LONGEST, {**LONG, "curve": CURVE[:10]})
    assert {PICTURE: picture(CURVE[:10])} == generate(tmp_path)
    assert "10,000 pages by two peers" in bench_longest(longest)
    assert "20,000 pages by two peers" in bench_long(longest)
