"""A world is the same to the last byte in another process, under another hash seed, and on another Python."""

import subprocess
import sys
from pathlib import Path

import pytest

from sim.plan import Event, Kind, Plan
from sim.trial import Size, run

pytestmark = pytest.mark.xdist_group("trace")
"""Keeps these tests in one process, which prepares their fixtures once."""

ROOT = Path(__file__).parent.parent.parent
SMALL = Size(pages=30, sites=4)
TROUBLED = Plan(
    3,
    4,
    (
        Event(1.0, Kind.SNAPSHOT, (1,)),
        Event(1.2, Kind.KILL, (1,)),
        Event(1.2, Kind.FULL, (3,), for_s=2.0),
        Event(1.5, Kind.LOSS, amount=0.05, for_s=3.0),
        Event(2.0, Kind.FREEZE, (2,), for_s=2.0),
        Event(2.5, Kind.RESTART, (1,), disk="old"),
        Event(3.0, Kind.JOIN, (4,)),
    ),
    delay_s=0.2,
    trails=1,
)
PROGRAM = "from tests.sim.test_trace import *; print(run(TROUBLED, SMALL).trace)"
NEEDED = "import aiodns, aiohttp, kademlia, msgpack, msgspec, pytest, selectolax"


LENDING = "from tests.sim.test_trace import *; from sim.draw import draw; print(run(draw(849, 16)).trace)"
"""A program with several pages of a site under way at once when the cell moves to its next owner."""


def traced_by(python: str, hash_seed: str, program: str = PROGRAM) -> str:
    """Return the trace of the troubled world, or the output of `program`, in another process of this Python."""
    environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [python, "-c", program]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def other_python() -> str | None:
    """Return a Python of another version that has all the peers need, as `make test-newer` sets one up, if any."""
    question = f"{NEEDED}; import sys; sys.exit(sys.version_info[:2] == {sys.version_info[:2]})"
    for venv in (".venv-newer", ".venv"):
        python = ROOT / venv / "bin/python"
        if python.is_file() and subprocess.run([python, "-c", question], stderr=subprocess.DEVNULL).returncode == 0:
            return str(python)
    return None


@pytest.fixture(scope="module")
def trace() -> str:
    here = run(TROUBLED, SMALL)
    assert 1 == here.kills
    assert {} == here.violations
    return here.trace


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_the_same_plan_is_the_same_world_under_another_hash_seed(trace: str, hash_seed: str) -> None:
    assert trace == traced_by(sys.executable, hash_seed)


@pytest.mark.worlds
def test_a_world_with_lent_pages_is_the_same_under_another_hash_seed() -> None:
    """Once a set was sent as it came."""
    assert traced_by(sys.executable, "0", LENDING) == traced_by(sys.executable, "1", LENDING)


def test_another_plan_is_another_world(trace: str) -> None:
    assert trace != run(TROUBLED.delayed(0.25), SMALL).trace


def test_the_same_plan_is_the_same_world_on_another_python(trace: str) -> None:
    python = other_python()
    if python is None:
        pytest.skip("no Python of another version with the dependencies: make test-newer sets one up")
    assert trace == traced_by(python, "7")
