"""Builds the sdist, and the wheels out of it, as a package index would get them."""

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from scripts.dist.steps import DistError, run, without_python_settings

PURE: Final = "-py3-none-any.whl"


class Built(NamedTuple):
    """The files."""

    sdist: Path
    wheel: Path
    """The wheel with native code for this system, if a compiler is here."""
    pure: Path
    """The wheel without native code, for every Python and system. Without a compiler there is no other."""

    def __str__(self) -> str:
        return ", ".join(f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)" for path in dict.fromkeys(self))


def build(root: Path, directory: Path) -> Built:
    """Build them into the directory, in place of those of earlier builds. The wheels are built out of the sdist."""
    for old in directory.glob("kadcrawl-*"):
        old.unlink()
    env = without_python_settings() | {"PIP_CONSTRAINT": str(root / "constraints.txt"), "PIP_QUIET": "1"}
    run(sys.executable, "-m", "build", "--outdir", directory, root, cwd=root, env=env, what="build")
    sdist, wheel = _only(directory, "kadcrawl-*.tar.gz"), _only(directory, "kadcrawl-*.whl")
    if wheel.name.endswith(PURE):
        return Built(sdist, wheel, wheel)
    command = (sys.executable, "-m", "build", "--wheel", "--outdir", directory, root)
    run(*command, cwd=root, env=env | {"KADCRAWL_PURE": "1"}, what="build without native code")
    return Built(sdist, wheel, _only(directory, f"kadcrawl-*{PURE}"))


def _only(directory: Path, pattern: str) -> Path:
    found = list(directory.glob(pattern))
    if len(found) != 1:
        raise DistError(f"build: {directory} should have one {pattern}, not {os.listdir(directory)}")
    return found[0]


def check_metadata(built: Built, root: Path) -> str:
    """Let twine say whether a package index would take the files and show the long description."""
    run(sys.executable, "-m", "twine", "check", "--strict", *dict.fromkeys(built), cwd=root, what="twine check")
    return "twine check --strict passed"
