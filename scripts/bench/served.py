"""The documentation sites of the benchmark on loopback, served by a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from scripts.sites import StoredSite

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PAGE_PATTERN: Final = r"^http://[^/]+/(?:[^?#]*(?:/|\.html?))?$"
"""A pattern of HTML pages by their names, for crawlers whose scope limits the hosts."""

Place = tuple[int, str]
"""A URL wherever its site is served: number of the site, path."""


class ServedSites(NamedTuple):
    """Sites while they are served."""

    seeds: list[str]
    log: Path
    """The access log, complete once the server has ended."""

    def entries(self) -> list[dict[str, Any]]:
        """Return the requests, in order."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def answered(self, entries: Sequence[dict[str, Any]]) -> dict[Place, int]:
        """Return the status of each URL that was asked for."""
        numbers = {f"http://{urlsplit(seed).netloc}": number for number, seed in enumerate(self.seeds)}
        return {(numbers[entry["site"]], entry["path"]): entry["status"] for entry in entries}


@contextmanager
def served(documentation: Sequence[StoredSite], directory: Path) -> Iterator[ServedSites]:
    """Serve these sites, with the access log in `directory`."""
    log = directory / "access.jsonl"
    roots = [str(site.root) for site in documentation]
    command = [sys.executable, "-m", "scripts.static_server", "--log", str(log), *roots]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        try:
            origins = json.loads(process.stdout.readline())
            seeds = [origin + site.entry for origin, site in zip(origins, documentation, strict=True)]
            yield ServedSites(seeds, log)
        finally:
            process.terminate()
