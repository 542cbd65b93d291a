"""The programs that an example finds on its path beside the system's: each is a short script.

`kadcrawl` and `python` are those under test, in each environment that `python -m venv` makes as well. `pip install`
installs nothing: it fails unless the packages are there and kadcrawl has the extras. `scp` copies between the machines
of the page. `pkill` knows the processes of the page alone. Run as `python -m tests.support.examples.programs NAME ...`,
this module is the last three.
"""

import importlib.metadata
import os
import re
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.examples.processes import MARK, command_line, of_page

ROOT: Final = Path(__file__).resolve().parents[3]
MACHINES: Final = "EXAMPLE_MACHINES"
"""The environment variable that names the directory with a home for each machine."""

_KADCRAWL = """#!{python}
import sys
from kadcrawl.cli import main
sys.exit(main())
"""
_PYTHON = """#!/bin/sh
if [ "$1" = -m ] && [ "$2" = pip ]; then shift 2; exec {bin}/pip "$@"; fi
if [ "$1" = -m ] && [ "$2" = venv ]; then
    mkdir -p "$3" && ln -sfn {bin} "$3/bin"
    exit
fi
exec {python} "$@"
"""
_PYTEST = """#!/bin/sh
exec {python} -m pytest -p no:cacheprovider "$@"
"""
_OWN = """#!/bin/sh
exec {python} -m tests.support.examples.programs {name} "$@"
"""


def write_programs(directory: Path) -> None:
    """Write the programs into a directory of their own."""
    directory.mkdir()
    scripts = {"kadcrawl": _KADCRAWL, "python": _PYTHON, "python3": _PYTHON, "pytest": _PYTEST}
    scripts |= dict.fromkeys(("pip", "pip3", "pipx", "scp", "pkill"), _OWN)
    for name, script in scripts.items():
        (directory / name).write_text(script.format(python=sys.executable, bin=directory, name=name))
        (directory / name).chmod(0o755)
    (directory / "activate").write_text("# The programs of this directory are on the path already.\n")


def pip(arguments: list[str], extras: frozenset[str]) -> str | None:
    """Return why the packages cannot be installed, or None."""
    if arguments[:1] != ["install"]:
        return "the examples know `pip install` alone"
    for argument in arguments[1:]:
        if argument.startswith("-"):
            continue
        parts = re.fullmatch(r"([\w.-]+?)(?:\[([\w,-]+)\])?(?:[=<>~!].*)?", argument)
        if parts is None:
            return f"{argument!r} is no package"
        if parts[1] in ("kadcrawl", "."):
            if unknown := set((parts[2] or "").split(",")) - extras - {""}:
                return f"kadcrawl has no extra {', '.join(sorted(unknown))}"
            continue
        try:
            importlib.metadata.version(parts[1])
        except importlib.metadata.PackageNotFoundError:
            return f"{parts[1]} is not installed where the examples run; add it to the extra `test`"
    return None


def scp(arguments: list[str], machines: Path) -> str | None:
    """Copy files between machines, and return why not, or None."""
    *sources, target = [argument for argument in arguments if not argument.startswith("-")]
    places = [_place(argument, machines) for argument in (*sources, target)]
    for source in places[:-1]:
        if not source.exists():
            return f"{source.name}: No such file or directory"
        if source.is_dir():
            shutil.copytree(source, places[-1] / source.name if places[-1].is_dir() else places[-1])
        else:
            shutil.copy2(source, places[-1])
    return None


def _place(argument: str, machines: Path) -> Path:
    machine, colon, path = argument.rpartition(":")
    return machines / machine.rpartition("@")[2] / path.removeprefix("~/") if colon else Path(argument)


def pkill(arguments: list[str], mark: str) -> str | None:
    """Send a signal to the page's processes whose command has a pattern, and return why not, or None."""
    number = signal.SIGTERM
    *options, pattern = arguments
    for option in options:
        if option == "-f":
            continue
        name = option.lstrip("-").removeprefix("SIG")
        number = signal.Signals(int(name)) if name.isdigit() else signal.Signals[f"SIG{name}"]
    found = [pid for pid in of_page(mark) if pid != os.getpid() and re.search(pattern, command_line(pid))]
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return None if found else "no process matches"


def main() -> int:
    """Be the program that the first argument names."""
    name, *arguments = sys.argv[1:]
    if name == "scp":
        why = scp(arguments, Path(os.environ[MACHINES]))
    elif name == "pkill":
        why = pkill(arguments, os.environ[MARK])
    else:
        from tests.support.examples.repository_commands import read_repository

        why = pip(arguments, read_repository(ROOT).extras)
    if why is not None:
        print(f"{name}: {why}", file=sys.stderr)
    return 0 if why is None else 1


if __name__ == "__main__":
    sys.exit(main())
