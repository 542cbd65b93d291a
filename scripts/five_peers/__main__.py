"""``python -m scripts.five_peers``: five capped peers with equal shares, predicted and shed, beside the least there is.

Takes about five minutes. Exits with 1 if a page was missed or fetched twice, or a makespan is above what is wanted.
"""

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from scripts.chaos.peer_process import KADCRAWL
from scripts.five_peers.run import (
    BLOCK_URLS,
    FETCHES,
    PAGES,
    PAGES_S,
    UPDATE_S,
    CrawlRun,
    bound_s,
    crawl,
    equal_s,
    lines,
)

WANTED: Final = 1.10
"""The wanted ratio of makespan to bound, for both predicted and shed loads."""
SOLVERS: Final = {"predictive": "exact", "swarm": "pso"}
"""The assignments by predicted times, and how blocks are divided by them."""
ASSIGNMENTS: Final = ("equal", "shedding", *SOLVERS)


def main() -> None:
    """Run all, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(prog="python -m scripts.five_peers", description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    parser.add_argument(
        "--only",
        action="append",
        choices=[*ASSIGNMENTS],
        help="run this assignment, repeatable",
    )
    parser.add_argument("--keep", action="store_true", help="keep the peers' directories")
    options = parser.parse_args()
    try:
        crawls = asyncio.run(_all(options.only or ASSIGNMENTS, options.keep))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(11)
    if options.json is not None:
        options.json.write_text(json.dumps(_figures(crawls), indent=1) + "\n")
    print(*_table(crawls), sep="\n")
    sys.exit(
        any(one.missed or one.repeated or (name != "equal" and one.over_bound > WANTED) for name, one in crawls.items())
    )


async def _all(names: Sequence[str], keep: bool) -> dict[str, CrawlRun]:
    task = asyncio.current_task()
    assert task is not None, "run by asyncio.run"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # So that no peer stays behind.
    rates = ", ".join(f"{line.pages_s:.1f}" for line in lines())
    print(f"{PAGES} pages, a fifth at each of five peers that crawl {rates} pages a second, {PAGES_S:g} together:")
    print(
        f"{bound_s():.1f} s at least, {equal_s():.1f} s with equal shares. Each {FETCHES} requests at a time,", end=" "
    )
    print(f"blocks of {BLOCK_URLS} URLs, updates every {UPDATE_S:g} s.", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="kadcrawl-five-"))
    crawls: dict[str, CrawlRun] = {}
    try:
        for name in names:
            if name == "equal":
                crawls[name] = await _shown("off", name, directory)
            if name == "shedding":
                crawls[name] = await _shown("drain", name, directory)
            if name in SOLVERS:
                network = directory / "network.json"
                if not network.exists():
                    await _shown("predictive", "training", directory)
                    await _train(directory / "training", network)
                crawls[name] = await _shown("predictive", name, directory, network, SOLVERS[name])
    except asyncio.CancelledError:  # What an error says is in there.
        if not keep:
            shutil.rmtree(directory)
        raise
    if keep:
        print(f"The peers' directories are below {directory}.")
    else:
        shutil.rmtree(directory)
    return crawls


async def _shown(
    balance: str, name: str, directory: Path, network: Path | None = None, solver: str = "exact"
) -> CrawlRun:
    def say(what: str) -> None:
        if sys.stdout.isatty():
            print(f"\r{name}: {what}", end=" ", flush=True)

    found = await crawl(balance, directory / name, say, network=network, solver=solver)
    print(f"\r{name}: {found.makespan_s:.1f} s, {found.over_bound:.3f} of the bound", flush=True)
    return found


async def _train(directory: Path, network: Path) -> None:
    process = await asyncio.create_subprocess_exec(KADCRAWL, "train", str(directory), "--output", str(network))
    try:
        if await process.wait():
            raise RuntimeError("nothing was learned")
    finally:
        if process.returncode is None:
            process.kill()


def _figures(crawls: dict[str, CrawlRun]) -> dict[str, Any]:
    return {
        "pages": PAGES,
        "pages_s": [line.pages_s for line in lines()],
        "bytes_s": [line.bytes_s for line in lines()],
        "fetches": FETCHES,
        "block_urls": BLOCK_URLS,
        "update_s": UPDATE_S,
        "bound_s": bound_s(),
        "equal_bound_s": equal_s(),
        "wanted": WANTED,
        "crawls": {name: asdict(one) for name, one in crawls.items()},
    }


def _table(crawls: dict[str, CrawlRun]) -> list[str]:
    """Return one line for each crawl."""
    rows = ["", "shares       makespan s  over bound  pages of each peer            end of each, s"]
    for name, one in crawls.items():
        pages = " ".join(f"{count:4}" for count in one.pages)
        ends = " ".join(f"{end:5.1f}" for end in one.ends_s)
        wrong = f"  {one.missed} missed, {one.repeated} fetched twice" if one.missed or one.repeated else ""
        rows.append(f"{name:12} {one.makespan_s:10.1f} {one.over_bound:11.3f}  {pages}     {ends}{wrong}")
    return rows


if __name__ == "__main__":
    main()
