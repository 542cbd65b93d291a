"""The three crawlers, run on sites that a static server serves on loopback, and their requests in the server's log.

Tests: tests/scripts/test_compare_links.py
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scripts.kadcrawl_run import crawl_command

ROOT: Final = Path(__file__).resolve().parents[2]
SCRAPY_CLIENT: Final = ROOT / "scripts/compare_links/scrapy_client.py"
CRAWL_S_MAX: Final = 900.0
AGENTS: Final = {"kadcrawl/": "kadcrawl", "Wget/": "wget", "Scrapy/": "scrapy"}
"""The crawlers by the beginning of their User-Agent."""
WGET: Final = ("wget", "--recursive", "--level=inf", "--execute", "robots=on", "--no-verbose", "--delete-after")
"""`wget -r`, but for its limit of 5 levels."""


class ClientError(Exception):
    """A crawler cannot be run. The text says why in one sentence."""


@dataclass(slots=True)
class Requests:
    """The requests of one crawler to one site."""

    count: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    """The status of the last answer by URL, as requested and without fragment."""

    def add(self, url: str, status: int) -> None:
        self.count += 1
        self.statuses[url] = status


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    origins: list[str]
    """The URL of each site, with a slash at its end."""
    log: Path


@contextmanager
def served(roots: Sequence[Path], log: Path) -> Iterator[Served]:
    """Serve the directories, each on an address of its own. The log is complete after the end."""
    command = [sys.executable, "-m", "scripts.static_server", "--log", str(log), *map(str, roots)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield Served(json.loads(process.stdout.readline()), log)
        finally:
            process.terminate()
            process.wait(timeout=30)


def run_kadcrawl(seeds: Sequence[str], directory: Path) -> None:
    """Crawl with the defaults of one peer, but without a delay. Raises ClientError."""
    command = crawl_command(
        seeds, peers=1, delay_s=0.0, data=directory / "kadcrawl", summary=directory / "kadcrawl.json"
    )
    _run(command, directory)


def run_wget(seeds: Sequence[str], directory: Path) -> str:
    """Crawl with `wget -r` and return the version of wget. Raises ClientError."""
    # Exit code 8: a server answered with an error, as for any dead link.
    _run([*WGET, "--directory-prefix", str(directory / "wget"), *seeds], directory, fine=(0, 8))
    return _run(["wget", "--version"], directory).split()[2]


def run_scrapy(python: str, seeds: Sequence[str], directory: Path) -> str:
    """Crawl with a default LinkExtractor and return the version of Scrapy. Raises ClientError."""
    version: str = json.loads(_run([python, str(SCRAPY_CLIENT), "crawl", *seeds], directory))["version"]
    return version


def scrapy_links(python: str, pages: Sequence[tuple[str, str, Path]], directory: Path) -> dict[str, list[str]]:
    """Return the links of LinkExtractor by page. `pages` are URL, Content-Type and file. Raises ClientError."""
    asked = json.dumps([[url, content_type, str(file)] for url, content_type, file in pages])
    links: dict[str, list[str]] = json.loads(_run([python, str(SCRAPY_CLIENT), "extract"], directory, asked))
    return links


def _run(command: Sequence[str], directory: Path, text: str = "", fine: Sequence[int] = (0,)) -> str:
    try:
        done = subprocess.run(
            command, cwd=directory, input=text, capture_output=True, text=True, timeout=CRAWL_S_MAX, check=False
        )
    except OSError as error:
        raise ClientError(f"{command[0]} does not start: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ClientError(f"{command[0]} took more than {CRAWL_S_MAX:.0f} s") from None
    if done.returncode not in fine:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ClientError(f"{command[0]} ended with exit code {done.returncode}: {last}")
    return done.stdout


def read_log(log: Path, sites: Sequence[str]) -> dict[str, dict[str, Requests]]:
    """Return the requests by crawler and site. The site is its number's name in `sites`, in the order of the server."""
    requests = {name: {site: Requests() for site in sites} for name in AGENTS.values()}
    origins: dict[str, str] = {}
    unknown: Counter[str] = Counter()
    for line in log.read_text(encoding="utf-8").splitlines():
        access = json.loads(line)
        host = access["site"]
        site = origins.setdefault(host, sites[int(host.split(".")[3].partition(":")[0]) - 2])
        name = next((name for agent, name in AGENTS.items() if access["user_agent"].startswith(agent)), None)
        if name is None:
            unknown[access["user_agent"]] += 1
        else:
            requests[name][site].add(host + access["path"], access["status"])
    if unknown:
        raise ClientError(f"the server met clients that are none of the three: {', '.join(unknown)}")
    return requests
