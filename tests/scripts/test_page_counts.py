"""The counts of a page: what they count, and a guard that finds a page that has become dearer."""

import os
import subprocess
import sys
from typing import Any

import pytest

from kadcrawl.store.journal import Journal
from scripts.page_counts import PageCountsError, crawl_counts, grown, version

KEPT = {"python": version(), "swarms": {"1 peer": {"writes": 10.0, "own functions called": 700.0}}}
PAGES = 12


def found(python: str = version(), **counts: float) -> dict[str, Any]:
    return {"python": python, "swarms": {"1 peer": {name.replace("_", " "): count for name, count in counts.items()}}}


def test_a_page_costs_no_more_than_the_file_says() -> None:
    command = [sys.executable, "-m", "scripts.page_counts"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": "1"}
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_only_what_grows_by_more_than_the_margin_is_reported() -> None:
    assert grown(KEPT, found(writes=10.2, own_functions_called=700.0)) == []
    assert grown(KEPT, found(writes=5.0, own_functions_called=100.0)) == []
    (growth,) = grown(KEPT, found(writes=10.3))
    assert str(growth) == "1 peer: writes per page: 10.3, not 10"


def test_a_count_that_is_new_has_grown() -> None:
    (growth,) = grown(KEPT, found(hashes=1.0))
    assert (growth.name, growth.kept, growth.counted) == ("hashes", 0.0, 1.0)


def test_calls_are_not_compared_between_versions_of_python() -> None:
    assert grown(KEPT, found(python="3.0", own_functions_called=9_999.0)) == []
    assert len(grown(KEPT, found(python="3.0", writes=9_999.0))) == 1


def test_one_more_statement_for_each_page_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = crawl_counts(1, PAGES)
    plain = Journal.write_page_line

    def with_one_more(self: Journal, line: bytes) -> None:
        plain(self, line)
        self.write("DELETE FROM outbox WHERE place<0", ())

    monkeypatch.setattr(Journal, "write_page_line", with_one_more)
    after = crawl_counts(1, PAGES)
    assert after["writes"] - before["writes"] == before["pages"]
    assert after["reads"] == before["reads"]


def test_another_profiler_is_not_disturbed() -> None:
    profiler = lambda *_: None  # noqa: E731
    sys.setprofile(profiler)
    try:
        with pytest.raises(PageCountsError, match="another profiler"):
            crawl_counts(1, PAGES)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
