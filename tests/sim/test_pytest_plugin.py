"""The fixture runs in a project of its own, as documented, and costs nothing where it is not used."""

import os
import subprocess
import sys
from pathlib import Path

from scripts.dist.documents import simulation_example

ROOT = Path(__file__).parent.parent.parent
INI = "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"


def run_pytest(directory: Path, test: str) -> subprocess.CompletedProcess[str]:
    """Run a test in a directory of its own, with every warning an error."""
    (directory / "pytest.ini").write_text(INI)
    (directory / "test_it.py").write_text(test)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    return subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, timeout=100, check=False)


def test_the_example_of_the_documentation_passes(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, simulation_example(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_it_stands_beside_other_loops(tmp_path: Path) -> None:
    test = """
from kadcrawl import Job

async def test_before():
    pass

def test_simulated(simulated_swarm):
    assert simulated_swarm(Job(), peers=2, pages={"http://a.test/": ""}).lost == []

async def test_after():
    pass
"""
    done = run_pytest(tmp_path, test.replace("async def", "import pytest\n\n@pytest.mark.asyncio\nasync def"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_whoever_does_not_use_it_loads_nothing(tmp_path: Path) -> None:
    test = """
import sys

def test_nothing_is_loaded():
    assert "kadcrawl_sim.pytest_plugin" in sys.modules
    assert not {"kadcrawl", "kadcrawl_sim.user_job", "aiohttp", "msgspec"} & {*sys.modules}
"""
    done = run_pytest(tmp_path, test)
    assert done.returncode == 0, done.stdout + done.stderr
