"""The loop of the tests of links."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.support.swarm.brisk_loop import BriskLoop

WAITING = ("test_acceptor.py", "test_client_connection.py")
"""Connections wait to be closed in these, so that the limits can be long beside the stalls of a busy machine."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give the tests that mostly wait the loop where that is brisk, and the others the usual one."""
    return {"brisk": BriskLoop} if item.path.name in WAITING else {"usual": asyncio.SelectorEventLoop}
