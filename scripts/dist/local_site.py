"""A real site of some two hundred pages, served on loopback while wheels are tried."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scripts import sites, truth
from scripts.dist.steps import DistError

PACKAGE = next(package for package in sites.PACKAGES if package.name == "gri-html-doc")
"""The smallest of the documentation sites that the tests crawl."""


class LocalSite(NamedTuple):
    """A site, and the URLs that a crawl of it has to find."""

    url: str
    statuses: dict[str, int]
    """URL -> status, found out by the simplest means (`scripts.truth`)."""


def site_directory(given: Path | None) -> Path:
    """Return the directory of the site: the one given, or the documentation out of a Debian package."""
    if given is not None:
        if not (given / "index.html").is_file():
            raise DistError(f"site: {given} has no index.html; name the top directory of a site")
        return given
    try:
        return sites.sites((PACKAGE,))[0].root
    except sites.SitesError as error:
        raise DistError(f"site: {error}; name the directory of any site on this machine by --site") from None


@contextmanager
def serving(root: Path, directory: Path) -> Iterator[LocalSite]:
    """Serve the site below `directory` while the context is open."""
    server = subprocess.Popen(
        [sys.executable, "-m", "scripts.static_server", str(directory)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None, "it is a pipe"
        line = server.stdout.readline()
        if not line:
            raise DistError("site: the static server has ended at once; see above why")
        (url,) = json.loads(line)
        yield LocalSite(url, truth.crawl([url]))
    finally:
        server.terminate()
        server.wait(timeout=10)
        if server.stdout is not None:
            server.stdout.close()
