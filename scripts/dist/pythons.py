"""Finds the Pythons of this machine that kadcrawl is for: on the path, and those of pyenv."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from scripts.dist.steps import DistError

OLDEST: Final = (3, 11)
"""The oldest version, as in setup.cfg's `python_requires`."""
NEWEST_MINOR_TRIED: Final = 20
_VERSION: Final = "import ensurepip, sys, venv; print(*sys.version_info[:3])"
"""A Python without the means to make environments is none to try."""


class Python(NamedTuple):
    """One Python."""

    version: tuple[int, ...]
    program: str

    def __str__(self) -> str:
        return f"Python {'.'.join(map(str, self.version))} ({self.program})"


def pythons() -> list[Python]:
    """Return the oldest and the newest Python here that kadcrawl supports, or a single version."""
    found: dict[tuple[int, ...], Python] = {}
    for program in _candidates():
        version = _version(program)
        if version is not None and version[:2] >= OLDEST:
            found.setdefault(version, Python(version, program))
    if not found:
        raise DistError("there is no Python of 3.11 or newer with venv and ensurepip here; install one")
    return [found[version] for version in sorted({min(found), max(found)})]


def _candidates() -> Iterable[str]:
    for minor in range(OLDEST[1], NEWEST_MINOR_TRIED + 1):
        if program := shutil.which(f"python3.{minor}"):
            yield program
    yield from map(str, sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")))
    if program := shutil.which("python3"):
        yield program


def _version(program: str) -> tuple[int, ...] | None:
    try:
        done = subprocess.run([program, "-c", _VERSION], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # The shims of pyenv are on the path although their Python is not chosen.
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None
