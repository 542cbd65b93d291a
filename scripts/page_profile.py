"""The profile of a page: what it costs by rooms of the house, in microseconds of CPU, on real sites.

The documentation sites of the benchmark are crawled twice. The first crawl is measured, and py-spy samples the second.
The parts of the samples divide the CPU time of the first, so the sampling costs nothing.

``python -m scripts.page_profile`` or ``make profile`` prints the table. With ``KADCRAWL_PURE=1`` the native link
extractor is switched off. py-spy has to be allowed to look at processes that it starts.

Tests: tests/scripts/test_page_profile.py
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import kadcrawl
from scripts.bench.served import PAGE_PATTERN, REPOSITORY, served
from scripts.kadcrawl_run import crawl_command
from scripts.measure import cost_of
from scripts.sites import MORE_PACKAGES, PACKAGES, SitesError, StoredSite, sites
from scripts.stack_rooms import START_UP, RoomShares, shares_of

SAMPLES_S: Final = 400
"""Looks per second."""
FUNCTIONS_SHOWN: Final = 25


class ProfileError(Exception):
    """There is no profile. The text says why in one sentence."""


def profiler() -> str:
    """Return the path of py-spy: beside the interpreter, or on the PATH. Raises ProfileError."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise ProfileError("there is no py-spy here; make profile installs it")
    return found


def profile(documentation: Sequence[StoredSite], peers: int, directory: Path) -> dict[str, Any]:
    """Return the microseconds of a page by room and by function. Raises ProfileError, SitesError."""
    program = profiler()
    directory.mkdir(parents=True, exist_ok=True)
    samples = directory / "samples.txt"
    looking = [program, "record", "--rate", str(SAMPLES_S), "--format", "raw", "--output", str(samples)]
    cpu_s, pages = _crawl(documentation, peers, directory, [])
    _crawl(documentation, peers, directory, [*looking, "--subprocesses", "--full-filenames", "--"])
    with samples.open() as lines:
        shares = shares_of(lines, str(Path(kadcrawl.__file__).parent))
    return figures_of(shares, cpu_s, pages, peers)


def _crawl(
    documentation: Sequence[StoredSite], peers: int, directory: Path, before: Sequence[str]
) -> tuple[float, int]:
    """Return the CPU seconds of a crawl and its pages. Raises ProfileError."""
    data = directory / "run"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    output = directory / "profile.log"
    with served(documentation, directory) as server:
        command = crawl_command(
            server.seeds,
            peers=peers,
            delay_s=0,
            data=data / "peers",
            summary=data / "summary.json",
            include=[PAGE_PATTERN],
        )
        cost = cost_of([*before, *command], output, REPOSITORY)
    if cost.exit_code != 0:
        raise ProfileError(f"the crawl ended with exit code {cost.exit_code}; its output is in {output}")
    return cost.cpu_s, sum(status == 200 for status in server.answered(server.entries()).values())


def figures_of(shares: RoomShares, cpu_s: float, pages: int, peers: int) -> dict[str, Any]:
    """Return the figures of a profile. Raises ProfileError."""
    samples = shares.rooms.total()
    if not samples:
        raise ProfileError("py-spy has seen nothing; it may not be allowed to look at processes here")
    us = cpu_s * 1e6 / samples / pages
    rooms = {name: round(count * us, 1) for name, count in shares.rooms.most_common() if name != START_UP}
    return {
        "peers": peers,
        "pages": pages,
        "native": os.environ.get("KADCRAWL_PURE", "") in ("", "0"),
        "samples": samples,
        "us": round(sum(rooms.values()), 1),
        "start_up_s": round(shares.rooms[START_UP] * cpu_s / samples, 3),
        "rooms": rooms,
        "functions": {name: round(count * us, 1) for name, count in shares.functions.most_common(FUNCTIONS_SHOWN)},
    }


def report(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"{figures['pages']:,} pages, {figures['peers']} peers, {figures['samples']:,} samples."
    yield f"A page costs {figures['us']:.0f} us of CPU; the start of all processes costs {figures['start_up_s']:.2f} s."
    for title, rows in (("room", figures["rooms"]), ("function", figures["functions"])):
        yield f"\n{title:60} {'us a page':>10} {'part':>7}"
        yield from (f"{name:60} {us:10.1f} {us / figures['us']:7.1%}" for name, us in rows.items())


def main() -> None:
    """Print the profile."""
    parser = argparse.ArgumentParser(prog="python -m scripts.page_profile", description="Profile a page by room.")
    parser.add_argument("--peers", type=int, default=1, metavar="N", help="peers that crawl, 1 by default")
    parser.add_argument("--more", action="store_true", help="7,000 pages instead of 2,600")
    parser.add_argument("--data", type=Path, default=REPOSITORY / "bench-data", metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args()
    try:
        documentation = sites(PACKAGES + MORE_PACKAGES if options.more else PACKAGES)
        figures = profile(documentation, options.peers, options.data)
    except (ProfileError, SitesError) as error:
        sys.exit(f"page_profile: {error}")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    print("\n".join(report(figures)))


if __name__ == "__main__":
    main()
