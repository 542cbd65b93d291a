"""Test the units: systemd takes them, they give a peer few rights, and the page on operation shows the same."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "deploy" / "systemd"
ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_MAX = 20
"""Limit on systemd's measure of what a service could do, in tenths: 100 is everything."""
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Return a directory with the units, whose command is that of this environment."""
    for unit in DIRECTORY.iterdir():
        here = str(Path(sys.executable).with_name("kadcrawl"))
        (tmp_path / unit.name).write_text(unit.read_text().replace("/usr/local/bin/kadcrawl", here))
    return tmp_path


@needs_systemd
@pytest.mark.parametrize("unit", ["kadcrawl.service", "kadcrawl-export.timer", "kadcrawl-export.service"])
def test_systemd_takes_the_unit(unit: str, units: Path) -> None:
    assert ANALYZE is not None
    run = subprocess.run([ANALYZE, "verify", "--man=no", units / unit], capture_output=True, text=True)
    about = [line for line in (run.stdout + run.stderr).splitlines() if "kadcrawl" in line]
    assert (0, []) == (run.returncode, about)


@needs_systemd
@pytest.mark.parametrize("unit", ["kadcrawl.service", "kadcrawl-export.service"])
def test_a_service_has_few_rights(unit: str, units: Path) -> None:
    assert ANALYZE is not None
    limits = ["--offline=yes", f"--threshold={EXPOSURE_MAX}"]
    run = subprocess.run([ANALYZE, "security", *limits, units / unit], capture_output=True, text=True)
    assert 0 == run.returncode, run.stdout.splitlines()[-1]


def test_the_page_shows_the_unit() -> None:
    page = (ROOT / "docs" / "how-to" / "operate.md").read_text()
    shown = re.search(r'```ini title="/etc/systemd/system/kadcrawl.service"\n(.*?)```', page, re.DOTALL)
    assert shown is not None
    assert (DIRECTORY / "kadcrawl.service").read_text() == shown[1]


def test_the_timer_is_for_its_service() -> None:
    assert (DIRECTORY / "kadcrawl-export.service").exists()
    assert "OnCalendar=" in (DIRECTORY / "kadcrawl-export.timer").read_text()
