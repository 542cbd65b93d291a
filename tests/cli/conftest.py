"""No process outlives its test: a failed one must not leave its peers to the next, nor its pipes to be its fault."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.support.swarm.command import STARTED
from tests.support.swarm.forked_command import EXEC


@pytest.fixture
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all commands of a test be new processes of Python, not forks."""
    monkeypatch.setenv(EXEC, "1")


@pytest.fixture(autouse=True)
async def _nothing_left_running(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    if request.node.get_closest_marker("chaos"):
        request.getfixturevalue("new_processes")
    yield
    while STARTED:
        process = STARTED.pop()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # start() made it the head of its group.
        await process.communicate()
