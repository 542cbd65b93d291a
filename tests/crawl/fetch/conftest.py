"""The loop of the tests of fetching."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.support.swarm.brisk_loop import BriskLoop

WAITING = ("test_fetcher.py",)
"""Servers in the process keep the fetcher waiting in these, so limits can be long beside stalls of a busy machine."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give the tests that mostly wait the loop where that is brisk, and the others the usual one."""
    return {"brisk": BriskLoop} if item.path.name in WAITING else {"usual": asyncio.SelectorEventLoop}
