"""Real documentation sites out of Debian packages: fetched, unpacked without root, cached.

A package's directory in the cache appears by one rename when it is complete, so a fetch that is broken off
leaves nothing half done, and two at once do no harm. What is there is used as it is, without the network.

``python -m scripts.sites [--more]`` fetches them all and prints where they are.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple


class Package(NamedTuple):
    """A Debian package with a site in it."""

    name: str
    root: str
    """The site's directory in the package."""
    entry: str = ""
    """The path of the crawl's first page, below the root, or "" when the root has an index.html."""


PACKAGES: Final = (
    Package("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html"),
    Package("sqlite3-doc", "usr/share/doc/sqlite3"),
    Package("gri-html-doc", "usr/share/doc/gri/html"),
    Package("python3.11-doc", "usr/share/doc/python3.11/html"),
)
"""About 2,650 pages, 23 MB to fetch."""
MORE_PACKAGES: Final = (Package("cppreference-doc-en-html", "usr/share/cppreference/doc/html", "en/index.html"),)
"""A package for volume: some 4,400 pages more for 4 MB more to fetch."""


class SitesError(Exception):
    """A package cannot be had here. The text says why in one sentence."""


class StoredSite(NamedTuple):
    """One site on disk."""

    name: str
    root: Path
    entry: str


def cache_directory() -> Path:
    """Return where packages are kept: $KADCRAWL_CACHE/sites, or .cache/sites in the repository."""
    cache = os.environ.get("KADCRAWL_CACHE")
    return (Path(cache) if cache else Path(__file__).resolve().parent.parent / ".cache") / "sites"


def sites(packages: tuple[Package, ...] = PACKAGES) -> list[StoredSite]:
    """Return the sites of `packages`, and fetch those that the cache lacks. Raises SitesError when that fails."""
    return [_site(package) for package in packages]


def _site(package: Package) -> StoredSite:
    unpacked = cache_directory() / package.name
    if not unpacked.is_dir():
        _fetch(package, unpacked)
    return StoredSite(package.name, (unpacked / package.root).resolve(strict=True), package.entry)


def _fetch(package: Package, unpacked: Path) -> None:
    require_apt(package.name)
    unpacked.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=unpacked.parent, prefix=".fetching-") as scratch:
        archive = download(package.name, Path(scratch))
        tree = Path(scratch) / "tree"
        tree.mkdir()
        unpack(archive, tree)
        if not (tree / package.root / (package.entry or "index.html")).is_file():
            raise SitesError(f"{archive.name} has no {package.root}/{package.entry or 'index.html'}")
        try:
            tree.rename(unpacked)
        except OSError:
            if not unpacked.is_dir():  # Otherwise somebody else was faster, which is as good.
                raise


def require_apt(name: str) -> None:
    """Raise the SitesError for a package that this machine has no means to fetch."""
    for program in ("apt-get", "dpkg"):
        if shutil.which(program) is None:
            raise SitesError(f"{name} cannot be fetched: this machine has no {program}")


def download(name: str, directory: Path) -> Path:
    """Fetch the archive of a Debian package into a directory. Raises SitesError."""
    try:
        _run("apt-get", "download", name, cwd=directory)
    except SitesError as error:
        if os.geteuid() != 0:
            raise SitesError(f"{error}; apt-get update, run as root, may help") from None
        _run("apt-get", "update")
        _run("apt-get", "download", name, cwd=directory)
    archive = next(directory.glob(f"{name}*.deb"), None)
    if archive is None:
        raise SitesError(f"{name} cannot be fetched: apt-get has left no archive of it")
    return archive


def unpack(archive: Path, tree: Path) -> None:
    """Unpack the archive of a Debian package. Raises SitesError."""
    _run("dpkg", "-x", str(archive), str(tree))


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise SitesError(f"{' '.join(command)} failed: {lines[-1]}")


def main() -> None:
    """Fetch the sites and print name and directory of each."""
    parser = argparse.ArgumentParser(description="Fetch real documentation sites out of Debian packages.")
    parser.add_argument("--more", action="store_true", help="also those the benchmark uses for volume")
    try:
        for site in sites(PACKAGES + MORE_PACKAGES if parser.parse_args().more else PACKAGES):
            print(f"{site.name}\t{site.root}")
    except SitesError as error:
        sys.exit(f"sites: {error}")


if __name__ == "__main__":
    main()
