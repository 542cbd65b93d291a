"""Counts of what one page costs a crawler: statements, commits, tasks, hashes, calls and messages, on a fixed web.

A simulated web without faults is crawled twice, with few pages and with many. The difference, divided by the pages, is
the price of one page more, without start and end. Time is virtual and chance is drawn from one seed, so a count is the
same on every machine, where CPU seconds are not. The native link extractor is switched off.

``python -m scripts.page_counts`` compares with docs/figures/page-counts.json, and fails if a count has grown.
``python -m scripts.figures page-counts`` writes the file anew. Do this when a count has fallen, or when its growth is
worth its price.

Tests: tests/scripts/test_page_counts.py
"""

import argparse
import json
import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from cProfile import Profile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import kadcrawl
from sim.loop import SimLoop
from sim.plan import Plan
from sim.synthetic_sites import PLAIN
from sim.synthetic_web import SyntheticWeb
from sim.trial import SEEDS, WEB_ADDRESS, Size, run

if TYPE_CHECKING:
    from _lsprof import profiler_entry

FILE: Final = Path(__file__).resolve().parents[1] / "docs/figures/page-counts.json"
PACKAGE: Final = f"{Path(kadcrawl.__file__).parent}{os.sep}"
SWARMS: Final = {"1 peer": 1, "3 peers": 3}
PAGES: Final = (100, 300)
"""The pages of the two webs. The first are enough for each part to have begun."""
SITES: Final = 12
DELAY_S: Final = 0.05
"""Seconds between two requests to a site: many commits have several pages, as in a crawl without delays."""
GROWTH_MAX: Final = 0.02
"""The part by which a count may exceed the file. A change that adds a statement or a task to each page is above it."""
HASHED: Final = frozenset({"digest", "hexdigest"})
STATEMENTS: Final = frozenset({"execute", "executemany"})
CONNECTIONS: Final = frozenset({"sqlite3.Connection", "sqlite3.Cursor"})
KINDS: Final = {"row": "reads", "rows": "reads", "_commit": "statements of commits"}
"""The kind of the statements that a function of the journal executes. All others write."""
METHOD: Final = re.compile(r"<method '(?P<name>\w+)' of '(?P<type>[\w.]+)' objects>")
"""A method of a built-in type, as a profiler names it."""
OTHER_PROFILER: Final = "another profiler is at work; count in a process of its own"
BY_VERSION: Final = frozenset({"own functions called", "built-in functions called"})
"""The counts that depend on the minor version of Python."""


class PageCountsError(Exception):
    """The counts cannot be compared. The text says why in one sentence."""


class PlainSize(Size):
    """A web of nothing but pages."""

    def web(self, plan: Plan) -> SyntheticWeb:
        return SyntheticWeb(
            plan.seed, sites=self.sites, pages=self.pages, seeds=SEEDS, mix=PLAIN, addresses=(WEB_ADDRESS,)
        )


@dataclass(frozen=True, slots=True)
class Growth:
    """One count of a page that is larger than in the file."""

    swarm: str
    name: str
    kept: float
    counted: float

    def __str__(self) -> str:
        return f"{self.swarm}: {self.name} per page: {self.counted:g}, not {self.kept:g}"


def counts_of(entries: Iterable["profiler_entry"]) -> Counter[str]:
    """Return the counts in the entries of a profiler: of each function, with what it called."""
    counts: Counter[str] = Counter()
    for entry in entries:
        code = entry.code
        if isinstance(code, str):
            continue  # A built-in function, which is counted with its callers.
        if code is SimLoop.create_task.__code__:
            counts["tasks"] += entry.callcount
        if not code.co_filename.startswith(PACKAGE):
            continue
        counts["own functions called"] += entry.callcount
        for called in entry.calls or ():
            if not isinstance(called.code, str):
                continue
            counts["built-in functions called"] += called.callcount
            if (method := METHOD.fullmatch(called.code)) is None:
                continue
            if method["name"] in HASHED:
                counts["hashes"] += called.callcount
            elif method["name"] in STATEMENTS and method["type"] in CONNECTIONS:
                counts[KINDS.get(code.co_name, "writes")] += called.callcount
    return counts


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the calls of the block. Raises PageCountsError if another profiler is at work."""
    if sys.getprofile() is not None:
        raise PageCountsError(OTHER_PROFILER)
    counts: Counter[str] = Counter()
    profiler = Profile()
    try:
        profiler.enable()
    except ValueError:  # From Python 3.12 on.
        raise PageCountsError(OTHER_PROFILER) from None
    try:
        yield counts
    finally:
        profiler.disable()
    counts.update(counts_of(profiler.getstats()))


def crawl_counts(peers: int, pages: int) -> Counter[str]:
    """Return the counts of one crawl. Raises PageCountsError."""
    plan = Plan(1, peers, (), delay_s=DELAY_S, own_delay_s=DELAY_S)
    with counted() as counts:
        outcome = run(plan, PlainSize(pages=pages, sites=SITES))
    if outcome.violations:
        raise PageCountsError(f"a crawl of {peers} peers broke promises: {', '.join(outcome.violations)}")
    counts["messages"] = outcome.messages
    counts["pages"] = outcome.urls
    return counts


def page_counts(peers: int) -> dict[str, float]:
    """Return the counts of one page more. Raises PageCountsError."""
    few, many = (crawl_counts(peers, pages) for pages in PAGES)
    pages = many.pop("pages") - few.pop("pages")
    return {name: round((many[name] - few[name]) / pages, 3) for name in sorted(many)}


def version() -> str:
    """Return the minor version of this Python."""
    return ".".join(platform.python_version_tuple()[:2])


def grown(kept: Mapping[str, Any], found: Mapping[str, Any]) -> list[Growth]:
    """Return the counts that exceed the file, of files as `measured` makes them."""
    same_python = kept["python"] == found["python"]
    return [
        Growth(swarm, name, kept["swarms"][swarm].get(name, 0.0), count)
        for swarm, counts in found["swarms"].items()
        for name, count in counts.items()
        if (same_python or name not in BY_VERSION) and count > kept["swarms"][swarm].get(name, 0.0) * (1 + GROWTH_MAX)
    ]


def measured() -> dict[str, Any]:
    """Return the counts of all swarms. Raises PageCountsError."""
    return {"python": version(), "swarms": {name: page_counts(peers) for name, peers in SWARMS.items()}}


def table(kept: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table of all counts, beside those of the file."""
    for swarm, counts in found["swarms"].items():
        yield f"{swarm:28} {'now':>9} {'kept':>9}"
        for name, count in counts.items():
            yield f"  {name:26} {count:9.3f} {kept['swarms'][swarm].get(name, 0.0):9.3f}"


def main() -> None:
    """Compare the counts with the file, or write it."""
    parser = argparse.ArgumentParser(prog="python -m scripts.page_counts", description="Count what a page costs.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts, and compare nothing")
    options = parser.parse_args()
    if os.environ.get("KADCRAWL_PURE") != "1":
        # The extractor is chosen when it is imported.
        os.execve(sys.executable, [*sys.orig_argv], {**os.environ, "KADCRAWL_PURE": "1"})
    try:
        found = measured()
    except PageCountsError as error:
        sys.exit(f"page_counts: {error}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
        return
    kept = json.loads(FILE.read_text())["figures"]
    print("\n".join(table(kept, found)))
    if more := grown(kept, found):
        again = "python -m scripts.figures page-counts"
        sys.exit("\n".join([f"page_counts: a page costs more ({again} keeps the new counts):", *map(str, more)]))


if __name__ == "__main__":
    main()
