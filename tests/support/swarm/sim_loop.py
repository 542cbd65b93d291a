"""A simulated event loop whose errors fail the test."""

import logging
from collections.abc import Iterator

import pytest

from sim.loop import SimLoop


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    """Give a simulated world. An error in any of its tasks or callbacks fails the test."""
    errors: list[dict[str, object]] = []
    loop = SimLoop(1)
    loop.set_exception_handler(lambda _, context: errors.append(context))
    logging.getLogger("rpcudp").setLevel(logging.CRITICAL)
    yield loop
    loop.close()
    assert errors == []
