"""Test the room for open files: it is found by trying, and a sentence says how to get more."""

import os
import resource
from collections.abc import Iterator

import pytest

from kadcrawl.system.open_files import files_allowed, has_room, how_to_allow, raise_limit


@pytest.fixture
def hard() -> Iterator[int]:
    """Return the hard limit. The limits are the former ones after the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def in_use() -> int:
    return len(os.listdir("/dev/fd"))


def test_there_is_room_for_as_many_files_as_the_limit_leaves(hard: int) -> None:
    limit = max(map(int, os.listdir("/dev/fd"))) + 50
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    before = in_use()
    assert limit == files_allowed()
    assert has_room(limit - before)
    assert not has_room(limit - before + 2)
    assert before == in_use(), "what was opened to try is closed again"


def test_the_soft_limit_is_raised_to_the_hard_limit(hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    raise_limit()
    assert (hard, hard) == resource.getrlimit(resource.RLIMIT_NOFILE)


def test_the_advice_is_a_command_that_this_system_allows(hard: int) -> None:
    assert "ulimit -n 100 " in how_to_allow(100).replace("`", " ")
    if hard != resource.RLIM_INFINITY:
        assert f"ulimit -n {hard + 1} " not in how_to_allow(hard + 1).replace("`", " ")
        assert str(hard + 1) in how_to_allow(hard + 1)
