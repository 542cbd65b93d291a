"""Builds the sdist, and the wheel out of it, as a package index would get them."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

from scripts.dist.steps import DistError, run, without_python_settings


class Built(NamedTuple):
    """The two files."""

    sdist: Path
    wheel: Path

    def __str__(self) -> str:
        return ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)" for path in self)


def build(root: Path, directory: Path) -> Built:
    """Build both into the directory, in place of those of earlier builds. The wheel is built out of the sdist."""
    for old in directory.glob("kadcrawl-*"):
        old.unlink()
    env = without_python_settings() | {"PIP_CONSTRAINT": str(root / "constraints.txt"), "PIP_QUIET": "1"}
    run(sys.executable, "-m", "build", "--outdir", directory, root, cwd=root, env=env, what="build")
    sdists, wheels = list(directory.glob("kadcrawl-*.tar.gz")), list(directory.glob("kadcrawl-*.whl"))
    if len(sdists) != 1 or len(wheels) != 1:
        raise DistError(f"build: {directory} should have one sdist and one wheel, not {os.listdir(directory)}")
    return Built(sdists[0], wheels[0])


def check_metadata(built: Built, root: Path) -> str:
    """Let twine say whether a package index would take the files and show the long description."""
    run(sys.executable, "-m", "twine", "check", "--strict", *built, cwd=root, what="twine check")
    return "twine check --strict passed"
