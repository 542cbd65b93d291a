"""Test the image: its file is clean, its variables are options, and what it copies is enough to build the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kadcrawl.cli.app import main

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "container" / "Containerfile"
HADOLINT = Path(sys.executable).with_name("hadolint")


def instructions(word: str) -> list[str]:
    """Return the arguments of this instruction, with continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", FILE.read_text())
    return re.findall(rf"^{word} (.*)$", text, re.MULTILINE)


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is installed on Linux with x86_64")
def test_the_file_has_nothing_that_hadolint_minds() -> None:
    run = subprocess.run([HADOLINT, "--failure-threshold", "style", FILE], capture_output=True, text=True)
    assert (0, "") == (run.returncode, run.stdout)


def test_the_image_has_no_compiler_and_no_root() -> None:
    last = FILE.read_text().rpartition("\nFROM ")[2]
    assert "rustc" in FILE.read_text()
    assert not re.search(r"rustc|gcc|apt-get|pip install", last)
    assert ["10001:10001"] == instructions("USER")
    assert ["SIGTERM"] == instructions("STOPSIGNAL")


def test_its_variables_are_those_of_options() -> None:
    set_here = set(re.findall(r"\b(KADCRAWL_\w+)=", " ".join(instructions("ENV"))))
    options = {parameter.opts[0] for parameter in main.commands["start"].params}
    named = {name.replace("KADCRAWL_", "--").lower() for name in set_here}
    assert {"--data", "--listen", "--metrics"} == named & options == named


def copied(source: Path, target: Path) -> None:
    """Copy what .dockerignore lets into the build."""
    lines = (source / ".dockerignore").read_text().splitlines()
    assert "*" == lines[1], "all is left out but what is named"
    for name in (line[1:] for line in lines if line.startswith("!")):
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(source / name, target / name)


def test_the_package_builds_from_what_the_image_copies(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    copied(ROOT, source)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        tmp_path,
        source,
    ]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"KADCRAWL_PURE": "1"})
    assert 0 == run.returncode, run.stdout + run.stderr
    (wheel,) = tmp_path.glob("kadcrawl-*.whl")
    names = subprocess.run([sys.executable, "-m", "zipfile", "--list", wheel], capture_output=True, text=True).stdout
    assert "kadcrawl/cli/commands/join.py" in names
