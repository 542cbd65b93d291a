"""Steps of the script. Each step runs programs, prints a line about the result, and stops everything if it fails."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

TIMEOUT_S: Final = 300
"""Seconds of one program. The slowest program installs some thirty packages."""
LINES_SHOWN: Final = 30
"""Lines shown of the output of a failed program."""


class DistError(Exception):
    """A published file would be wrong. The text says what is wrong, and what to do."""


def step(name: str, work: Callable[[], str]) -> None:
    """Do the work, and print its name, its time and its result."""
    began = time.monotonic()
    said = work()
    print(f"  {name:<12}{time.monotonic() - began:6.1f} s  {said}", flush=True)


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None, what: str) -> str:
    """Run a program and return its standard output. Raises DistError if it fails; `what` says what it should do."""
    try:
        done = subprocess.run(
            list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise DistError(f"{what}: there is no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise DistError(f"{what}: not done after {TIMEOUT_S} s: {_typed(command)}") from None
    if done.returncode != 0:
        shown = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-LINES_SHOWN:])
        raise DistError(f"{what}: exit code {done.returncode} of {_typed(command)}\n{shown}")
    return done.stdout


def without_python_settings() -> dict[str, str]:
    """Return the environment without variables that let a program find modules of another environment."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def _typed(command: Sequence[str | Path]) -> str:
    words = " ".join(map(str, command))
    return words if len(words) < 300 else f"{words[:300]}..."
