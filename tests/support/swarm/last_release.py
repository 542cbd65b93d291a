"""The code of the last release, from its tag, and until there is a tag that of the commit before the current one.

`unpack` writes it into a directory, in which `python -m kadcrawl` runs it with the libraries of this environment.
"""

import io
import re
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
BASICS = "kadcrawl/link/wire/basics.py"


def last_release() -> str | None:
    """Return the name of the last release in git, a tag or a commit, or None without a history to take it from."""
    tag = _git("describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD~1")
    commit = tag or _git("rev-parse", "--verify", "--quiet", "HEAD~1")
    return commit.decode().strip() if commit else None


def wire_version(release: str) -> int:
    """Return the version of the wire of a release."""
    found = re.search(rb"^WIRE_VERSION = (\d+)$", _git("show", f"{release}:{BASICS}"), re.MULTILINE)
    assert found is not None, f"{release} has a wire"
    return int(found[1])


def unpack(release: str, into: Path) -> None:
    """Write the package of a release into a directory."""
    with tarfile.open(fileobj=io.BytesIO(_git("archive", release, "kadcrawl"))) as archive:
        archive.extractall(into, filter="data")


def _git(*arguments: str) -> bytes:
    """Return the output of git, or nothing if it fails or is not there."""
    try:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""
