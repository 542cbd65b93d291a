"""Inputs of seeds that are closed at the end of a test, and the loop of the tests."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from kadcrawl.cli.seeds.seed_file import SeedFile
from tests.support.swarm.brisk_loop import BriskLoop

OpenSeeds = Callable[[Path | str], SeedFile]


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give the tests that wait for deadlines the loop where waiting is brisk, and the others the usual one."""
    return {"brisk": BriskLoop} if item.path.name == "test_feeding.py" else {"usual": asyncio.SelectorEventLoop}


@pytest.fixture
def open_seeds() -> Iterator[OpenSeeds]:
    """Return a function that opens an input by its path."""
    with ExitStack() as stack:

        def opened(path: Path | str) -> SeedFile:
            seeds = SeedFile(str(path))
            stack.callback(seeds.close)
            return seeds

        yield opened
