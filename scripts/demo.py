"""The demo: four peers without a master crawl the sample web to the end, and a judge says how it went.

The sample web (`sim.sample_web`) is served from this process; `kadcrawl crawl` runs beside it and shows its
own progress. Afterwards the web's access log is held against what a correct crawler does, and what the peers
wrote against both. Exit code 0 only if everything was right.

``python -m scripts.demo`` or ``make demo``; each run begins with an empty directory.
"""

import argparse
import asyncio
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scripts.kadcrawl_run import LoggedPage, crawl_command, page_lines
from sim.judge import Verdict
from sim.sample_pages import SITES
from sim.sample_traps import NAME, Bounds
from sim.sample_web import SampleWeb

PEERS: Final = 4
DELAY_S: Final = 0.1
"""Seconds between two requests to one site. The default of 1 s would make a long demo."""
MARKER: Final = ".kadcrawl-demo"
"""Stands in a directory the demo made, and may therefore delete."""
TRAPS: Final = {
    "path_queries": "to one more choice of facets of a list: /list?facet0=on&facet3=on&...",
    "path_repeats": "where the path repeats itself: /halls/east/west/east/west/...",
    "path_segments": "where the path only grows: /down/0/1/2/...",
    "query_parameters": "where the query grows: /sieve?mesh0=fine&mesh1=fine&...",
    "session_id": "that are each a new URL of a page in the shop, followed without their session IDs",
    "site_pages": "to the next day of a calendar, when the site had its share of pages",
}
"""The links of `sim.sample_traps` that each limit leaves out."""
SHOWN_MAX: Final = 5
"""Faults of one kind that are printed."""


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="Four peers crawl a sample web of a few hundred pages.")
    parser.add_argument("--data", type=Path, default=Path("demo-data"), metavar="DIR", help="default: demo-data")
    directory = parser.parse_args().data
    try:
        begin_anew(directory)
    except OSError as error:
        sys.exit(f"demo: {error}")
    try:
        sys.exit(asyncio.run(_demo(directory)))
    except KeyboardInterrupt:
        sys.exit(11)


def begin_anew(directory: Path) -> None:
    """Make an empty directory in place of an earlier demo's. Raises OSError if it is somebody else's."""
    if directory.exists():
        if not (directory / MARKER).is_file():
            raise FileExistsError(f"{directory} exists and is not an earlier demo's; name another with --data")
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    (directory / MARKER).touch()


async def _demo(directory: Path) -> int:
    peers_directory, summary = directory / "peers", directory / "summary.json"
    bounds = Bounds()
    async with SampleWeb(traps=bounds) as sample:
        names = ", ".join(site.name for site in SITES)
        print(f"A sample web is up: {len(SITES)} sites ({names}),")
        print(f"and one without end ({NAME}): made of traps, it gets {bounds.site_pages} pages.")
        print(f"{PEERS} peers, no master, {DELAY_S} s between two requests to one site.\n", flush=True)
        command = crawl_command(
            sample.seeds,
            peers=PEERS,
            delay_s=DELAY_S,
            data=peers_directory,
            summary=summary,
            options=("--max-site-pages", str(bounds.site_pages), "--max-path-queries", str(bounds.path_queries)),
        )
        code = await _run(command)
        if code != 0:
            print(f"\ndemo: kadcrawl ended with exit code {code}", file=sys.stderr)
            return code
        lines = list(page_lines(peers_directory))
        faults = [*_faults(sample.judge(DELAY_S)), *_log_faults(lines, sample)]
        report = _report(sample, lines, json.loads(summary.read_text()), directory)
    print("", *report, "", sep="\n")
    print(*_sentences(faults), sep="\n")
    return 1 if faults else 0


async def _run(command: list[str]) -> int:
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            # Interrupted: the same Ctrl-C has reached the crawl, which drains and ends by itself.
            await process.wait()


def _faults(verdict: Verdict) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (fault, places) for each kind of fault that the judge found."""
    kinds = {
        "pages left out": verdict.missing,
        "URLs nobody may want": verdict.extra,
        "URLs fetched too often": verdict.duplicates,
        "requests that hurried a site": verdict.hurried,
        "requests against robots.txt": verdict.disobedient,
    }
    yield from ((kind, found) for kind, found in kinds.items() if found)


def _log_faults(lines: list[LoggedPage], sample: SampleWeb) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield where the peers' page logs differ from the web: a URL lacking, of another status, or twice."""
    truth = {url: end.status for url, end in sample.truth().items() if not url.endswith("/robots.txt")}
    told: Mapping[str, int] = {line.url: line.status for line in lines if line.status is not None}
    otherwise = tuple(url for url in truth.keys() | told.keys() if truth.get(url) != told.get(url))
    twice = tuple(url for url, count in Counter(line.url for line in lines).items() if count > 1)
    if otherwise:
        yield "URLs the page logs tell otherwise", tuple(sorted(otherwise))
    if twice:
        yield "URLs that stand twice in the page logs", twice


def _report(sample: SampleWeb, lines: list[LoggedPage], summary: dict[str, Any], directory: Path) -> Iterator[str]:
    yield f"Done in {summary['seconds']:.0f} s: {summary['pages']} pages, {summary['links_seen']} links seen,"
    yield f"{summary['peer_messages']} messages between peers, {summary['duplicates']} URLs fetched twice."
    yield ""
    yield "Who did what"
    for peer in summary["peers"]:
        yield f"  peer {peer['id'][:8]}  {peer['pages']:4} pages of {peer['urls']:4} URLs"
    yield ""
    yield f"What ended the crawl of the {NAME}"
    for limit, where in TRAPS.items():
        links = summary["links_left_out"].get(limit, 0)
        yield f"  {limit:16} {links:4} link{'s' * (links != 1)} {where}"
    yield ""
    yield "The life of one URL"
    yield from _life(sample, lines)
    yield ""
    yield f"Pages are listed in {directory}/peers/*/pages.jsonl and kept in the WARC files beside them."


def _life(sample: SampleWeb, lines: list[LoggedPage]) -> Iterator[str]:
    """Tell of the landing page, which only a redirect from another site leads to."""
    museum = sample.origins[1]
    landing = next((line for line in lines if line.url == f"{museum}/landing.html"), None)
    asked = next((access for access in sample.access_log if access.path == "/moved"), None)
    if landing is None or asked is None:
        yield "  (the page it is told of was not fetched)"
        return
    fields = landing.fields
    yield f"  {landing.url}"
    yield f"  found    {asked.url} answered {asked.status} and named it, at depth {fields['depth']}"
    yield f"  owned    by peer {fields['peer'][:8]}, whose range its site's key falls into"
    yield f"  fetched  {fields['fetched_at']}: {landing.status}, {fields['bytes']} bytes in {fields['ms']} ms"
    yield f"  done     once its {fields['links']} link was journaled by the owner of the site it leads to"
    yield f"  kept     {landing.directory}/{fields['warc']} from byte {fields['offset']}"


def _sentences(faults: list[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    if not faults:
        yield "The judge, by the web's own access log: every reachable page was fetched once and none else,"
        yield "no site was hurried and robots.txt was obeyed."
        return
    yield "The judge found fault:"
    for kind, found in faults:
        yield f"  {len(found)} {kind}"
        yield from (f"    {one}" for one in found[:SHOWN_MAX])
        if len(found) > SHOWN_MAX:
            yield f"    and {len(found) - SHOWN_MAX} more"


if __name__ == "__main__":
    main()
