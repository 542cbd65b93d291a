"""Programs of Debian packages that the benchmark starts: those of the machine, or unpacked without root and cached.

What a package needs beside itself is unpacked with it, as far as it is rarely there already.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from scripts.sites import SitesError, cache_directory, download, require_apt, unpack


class DebianProgram(NamedTuple):
    """A program and the Debian packages that it comes in."""

    name: str
    packages: tuple[str, ...]


class FoundProgram(NamedTuple):
    """A program that runs here."""

    path: str
    environment: dict[str, str]
    """Variables that it needs."""


WGET2: Final = DebianProgram("wget2", ("wget2", "libwget0", "libgpgme11", "libassuan0"))
REDIS: Final = DebianProgram("redis-server", ("redis-server", "redis-tools", "libjemalloc2", "liblzf1"))


def found(program: DebianProgram) -> FoundProgram:
    """Return a program of this machine, or of the cache, after fetching it. Raises SitesError if it does not run."""
    if (installed := shutil.which(program.name)) is not None:
        return FoundProgram(installed, {})
    tree = cache_directory().parent / "programs" / program.name
    if not tree.is_dir():
        _fetch(program, tree)
    libraries = [str(path) for path in (tree / "usr/lib").glob("*-linux-gnu")]
    environment = {"LD_LIBRARY_PATH": ":".join([*libraries, str(tree / "usr/lib")])}
    path = str(tree / "usr/bin" / program.name)
    try:
        subprocess.run([path, "--version"], env=environment, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SitesError(f"{program.name} of its Debian package does not run here: {error}") from None
    return FoundProgram(path, environment)


def _fetch(program: DebianProgram, tree: Path) -> None:
    """Unpack the packages, all or none. Raises SitesError."""
    require_apt(program.name)
    tree.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tree.parent, prefix=".fetching-") as scratch:
        unpacked = Path(scratch) / "tree"
        unpacked.mkdir()
        for name in program.packages:
            unpack(download(name, Path(scratch)), unpacked)
        unpacked.rename(tree)
