"""Property tests have no deadline, as machines may be busy, and a summary of the examples ends a run.

While the tests are collected, millions of objects are made that stay, so the garbage collector does not search them
then or later.
"""

import gc
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.examples.summary import pytest_terminal_summary

if TYPE_CHECKING:
    from tests.support.scheduler import ForgetfulScheduler

__all__ = ["pytest_collection", "pytest_terminal_summary"]

settings.register_profile("kadcrawl", deadline=None)
settings.load_profile("kadcrawl")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> "ForgetfulScheduler | None":
    """Give the scheduler of `--dist loadgroup`; without pytest-xdist nobody asks."""
    if config.option.dist != "loadgroup":
        return None
    from tests.support.scheduler import ForgetfulScheduler

    return ForgetfulScheduler(config, log)
