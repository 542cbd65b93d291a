"""The condition of tests that need network namespaces."""

import pytest

from scripts.chaos.namespaces import unavailable


@pytest.fixture
def namespaces() -> None:
    """Skip the test where the machine makes no namespaces. Only such tests take this fixture, as asking makes one."""
    if (why := unavailable()) is not None:
        pytest.skip(why)
