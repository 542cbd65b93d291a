"""The crawlers of the benchmark, and how each is started."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from scripts.bench.programs import REDIS, WGET2, FoundProgram, found
from scripts.bench.served import PAGE_PATTERN, REPOSITORY
from scripts.kadcrawl_run import crawl_command
from scripts.sites import SitesError

OPPONENTS: Final = REPOSITORY / ".venv-bench"
"""The directory of the opponents' own environment, which `make bench` makes."""
BARE_LOOP: Final = "bare loop"
ONE_PEER: Final = "kadcrawl, 1 peer"
TWO_PEERS: Final = "kadcrawl, 2 peers"
IN_PYTHON: Final = ", only Python"
SCRAPY: Final = "Scrapy, lean"
SCRAPY_REDIS: Final = "scrapy-redis, 2 workers"
NAMES: Final = (
    "wget2",
    BARE_LOOP,
    ONE_PEER,
    TWO_PEERS,
    ONE_PEER + IN_PYTHON,
    TWO_PEERS + IN_PYTHON,
    "spider-rs",
    SCRAPY,
    SCRAPY_REDIS,
)
ONCE: Final = frozenset({SCRAPY_REDIS})
"""Crawlers that run once: an idle worker of scrapy-redis looks for work every five seconds, so a run takes a minute."""
WGET2_THREADS: Final = 32


@dataclass(frozen=True, slots=True)
class Crawler:
    """One crawler that can be had here."""

    name: str
    command: Callable[[Sequence[str], Path], list[str]]
    """Makes the command from the seeds and a directory for what it writes."""
    environment: Mapping[str, str] = field(default_factory=dict)
    covers_all: bool = True
    """A run that leaves a page out is no result. Otherwise the table says how many pages it found."""


class CrawlerMissingError(Exception):
    """A crawler cannot be had here. The text says why in one sentence."""


def crawler(name: str) -> Crawler:
    """Return the crawler of this name. Raises CrawlerMissingError."""
    if name.startswith("kadcrawl"):
        environment = {"KADCRAWL_PURE": "1" if name.endswith(IN_PYTHON) else "0"}
        return Crawler(name, partial(_kadcrawl, int(name.split()[1])), environment)
    try:
        return {
            BARE_LOOP: _bare_loop,
            SCRAPY: _scrapy,
            SCRAPY_REDIS: _scrapy_redis,
            "wget2": _wget2,
            "spider-rs": _spider_rs,
        }[name]()
    except SitesError as error:
        raise CrawlerMissingError(str(error)) from None


def _kadcrawl(peers: int, seeds: Sequence[str], data: Path) -> list[str]:
    summary = data / "summary.json"
    return crawl_command(seeds, peers=peers, delay_s=0, data=data / "peers", summary=summary, include=[PAGE_PATTERN])


def _bare_loop() -> Crawler:
    loop = [sys.executable, "-m", "scripts.bare_loop", "--wanted", PAGE_PATTERN]
    return Crawler(BARE_LOOP, lambda seeds, data: [*loop, *seeds])


def _python(module: str) -> str:
    """Return the interpreter of the opponents. Raises CrawlerMissingError if it lacks a module."""
    if not list(OPPONENTS.glob(f"lib/python*/site-packages/{module}")):
        raise CrawlerMissingError(f"{OPPONENTS.name} has no {module}; make bench installs it")
    return str(OPPONENTS / "bin/python")


def _scrapy() -> Crawler:
    program = [_python("scrapy"), str(REPOSITORY / "scripts/p_scrapy.py")]
    return Crawler(SCRAPY, lambda seeds, data: [*program, *seeds])


def _scrapy_redis() -> Crawler:
    program = [_python("scrapy_redis"), str(REPOSITORY / "scripts/p_scrapy_redis.py")]
    redis = found(REDIS)

    def command(seeds: Sequence[str], data: Path) -> list[str]:
        return [*program, "--redis", redis.path, "--directory", str(data), *seeds]

    return Crawler(SCRAPY_REDIS, command, redis.environment)


def _wget2() -> Crawler:
    program = found(WGET2)
    return Crawler("wget2", partial(_wget2_command, program), program.environment, covers_all=False)


def _wget2_command(program: FoundProgram, seeds: Sequence[str], data: Path) -> list[str]:
    """Return the command of a run that keeps no file, and parses all it gets."""
    quiet = ["--quiet", "--no-config", "--progress=none", "--delete-after", f"--directory-prefix={data}"]
    pattern = ["--filter-urls", "--regex-type=pcre", f"--accept-regex={PAGE_PATTERN}"]
    reach = ["--recursive", "--level=0", "--no-robots", f"--max-threads={WGET2_THREADS}"]
    return [program.path, *quiet, *reach, *pattern, *seeds]


def _spider_rs() -> Crawler:
    if not (OPPONENTS / "node_modules/@spider-rs/spider-rs").is_dir():
        raise CrawlerMissingError(f"{OPPONENTS.name} has no @spider-rs/spider-rs; make bench installs it where npm is")
    script = str(REPOSITORY / "scripts/p_spider_rs.cjs")
    environment = {"NODE_PATH": str(OPPONENTS / "node_modules")}
    return Crawler(
        "spider-rs", lambda seeds, data: ["node", script, PAGE_PATTERN, *seeds], environment, covers_all=False
    )
