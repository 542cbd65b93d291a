"""The last release, from its tag, and until there is a tag the commit before the current one.

`install` puts it into a virtual environment of its own, with the versions of its libraries.
"""

import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from scripts.dist.steps import without_python_settings

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


def install(release: str, into: Path) -> tuple[str, ...]:
    """Install a release and its libraries into a new virtual environment, and return the words that run it."""
    source, environment = into / "source", into / "venv"
    with tarfile.open(fileobj=io.BytesIO(_git("archive", release))) as archive:
        archive.extractall(source, filter="data")
    python = environment / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", source / "constraints.txt")
    for command in ((sys.executable, "-m", "venv", environment), (*pip, source)):
        done = subprocess.run(command, cwd=into, env=without_python_settings(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return str(python), "-I", "-m", "kadcrawl"  # Isolated, as variables may name the code of this release.


def _git(*arguments: str) -> bytes:
    """Return the output of git, or nothing if it fails or is not there."""
    try:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""
