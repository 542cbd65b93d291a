"""No process outlives its test: a failed one must not leave its peers to the next, nor its pipes to be its fault."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.support.swarm.command import STARTED


@pytest.fixture(autouse=True)
async def _nothing_left_running() -> AsyncIterator[None]:
    yield
    while STARTED:
        process = STARTED.pop()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # start() made it the head of its group.
        await process.communicate()
