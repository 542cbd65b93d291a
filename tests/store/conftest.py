"""A store that has begun, for the tests of this room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kadcrawl.store.store import Store
from tests.support.stores import opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Open a store in the directory of the test, and close it at the end."""
    store = opened(tmp_path)
    yield store
    store.close()
