"""``python -m scripts.native_build`` compiles the native part of the link extractor in place, if its sources changed.

The sources are Rust without packages (`native/src`), so ``rustc`` alone compiles them. setup.py calls the same code, so
only the standard library is imported here. kadcrawl works without the result, and slower.

Tests: tests/scripts/test_native_build.py
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
MODULE: Final = "kadcrawl.crawl.content._native"
IN_PLACE: Final = Path("kadcrawl/crawl/content/_native.abi3.so")
"""The module in the source tree. Its name says that it is for every CPython from 3.11 on."""
CRATE: Final = Path("native/src/lib.rs")
FLAGS: Final = (
    *("--edition", "2021", "--crate-name", "_native", "--crate-type", "cdylib"),
    *("-C", "opt-level=3", "-C", "lto=fat", "-C", "codegen-units=1", "-C", "strip=symbols"),
)
DYNAMIC_LOOKUP: Final = ("-C", "link-arg=-undefined", "-C", "link-arg=dynamic_lookup")
"""What the linker of macOS needs to leave the functions of CPython open until the module is loaded."""
TIMEOUT_S: Final = 300


class BuildError(Exception):
    """The module cannot be compiled here. The text says why in one sentence."""


def compiler(environment: Mapping[str, str]) -> str | None:
    """Return the path of rustc, or None if there is none or ``KADCRAWL_PURE=1`` asks for no native code."""
    if environment.get("KADCRAWL_PURE", "") not in ("", "0"):
        return None
    return shutil.which("rustc", path=environment.get("PATH"))


def sources(root: Path = ROOT) -> list[Path]:
    """Return the source files."""
    return sorted((root / CRATE).parent.glob("*.rs"))


def digest(root: Path = ROOT) -> str:
    """Return a digest of the sources and of how they are compiled."""
    whole = sha256(" ".join(FLAGS).encode())
    for path in sources(root):
        whole.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def build(target: Path, root: Path = ROOT) -> None:
    """Compile the module to this file. Raises BuildError."""
    rustc = compiler(os.environ)
    if rustc is None:
        raise BuildError("no rustc was found, or KADCRAWL_PURE is set")
    target.parent.mkdir(parents=True, exist_ok=True)
    lookup = DYNAMIC_LOOKUP if sys.platform == "darwin" else ()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".native-") as scratch:
        made = Path(scratch) / target.name
        command = [rustc, *FLAGS, *lookup, str(root / CRATE), "-o", str(made)]
        environment = {**os.environ, "NATIVE_SOURCES_DIGEST": digest(root)}
        try:
            done = subprocess.run(
                command, env=environment, timeout=TIMEOUT_S, capture_output=True, text=True, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"{rustc} could not be run: {error}") from error
        if done.returncode != 0 or not made.exists():
            said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
            raise BuildError(f"{rustc} failed: {said}")
        made.replace(target)


def is_current(root: Path = ROOT) -> bool:
    """Return whether the module in the source tree was compiled from the sources that are there."""
    module = root / IN_PLACE
    return module.exists() and digest(root).encode() in module.read_bytes()


def ensure(root: Path = ROOT) -> str:
    """Compile the module in the source tree if it is missing or old, and return what was done. Raises BuildError."""
    with open(root / CRATE, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests run in several processes.
        if is_current(root):
            return f"{IN_PLACE} is up to date"
        build(root / IN_PLACE, root)
        return f"compiled {IN_PLACE}"


def main() -> None:
    """Compile the module in place."""
    try:
        print(ensure())
    except BuildError as error:
        print(f"kadcrawl goes without its native code: {error}")


if __name__ == "__main__":
    main()
