"""Inputs of seeds that are closed at the end of a test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kadcrawl.cli.seeds.seed_file import SeedFile

OpenSeeds = Callable[[Path | str], SeedFile]


@pytest.fixture
def open_seeds() -> Iterator[OpenSeeds]:
    """Return a function that opens an input by its path."""
    with ExitStack() as stack:

        def opened(path: Path | str) -> SeedFile:
            seeds = SeedFile(str(path))
            stack.callback(seeds.close)
            return seeds

        yield opened
