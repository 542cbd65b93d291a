"""Test that all limits of a bounded process together stay within its memory, and that what has no room is refused."""

from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_limits import limits_with
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.memory_plan import (
    ENTRY_BYTES,
    LARGE_COST,
    LEAF_BASE_BYTES,
    MEBIBYTE,
    PEER_BASE_BYTES,
    RECENT_BYTES,
    ROOM_LEAST_BYTES,
    SMALL_COST,
    TAG_BYTES,
    MemoryPlan,
    memory_plan,
)

LEAST = LEAF_BASE_BYTES + ROOM_LEAST_BYTES


def config(memory_bytes: int, *sinks: str) -> Config:
    return Config(data=Path("data"), limits=Limits(memory_bytes=memory_bytes), sinks=sinks)


def worst(limits: Limits) -> int:
    """Return the bytes that a process takes if everything is at its limit at once."""
    return (
        limits.held_bytes_max * LARGE_COST * limits.large_bodies_max
        + limits.large_body_bytes * SMALL_COST * limits.fetches_max
        + limits.active_sites_max * limits.site_window * ENTRY_BYTES
        + 2 * limits.recent_links_max * RECENT_BYTES
        + 2 * limits.robots_cached_bytes_max
        + limits.remembered_tags_max * TAG_BYTES
        + limits.unfinished_bytes_max
        + limits.journal_cache_bytes
        + limits.filters_bytes_max
    )


@pytest.mark.parametrize("memory_mb", [LEAST // MEBIBYTE, 64, 100, 300, 1000])
def test_all_limits_together_stay_within_the_memory(memory_mb: int) -> None:
    plan = MemoryPlan(memory_mb * MEBIBYTE, LEAF_BASE_BYTES)
    assert worst(plan.bound(Limits())) <= plan.room_bytes < worst(Limits(held_bytes_max=32 * MEBIBYTE))


def test_more_memory_allows_more() -> None:
    small, large = (MemoryPlan(size * MEBIBYTE, PEER_BASE_BYTES).bound(Limits()) for size in (64, 640))
    assert small.held_bytes_max < large.held_bytes_max
    assert small.fetches_max < large.fetches_max == Limits().fetches_max


def test_a_limit_that_is_lower_already_stays() -> None:
    low = Limits(fetches_max=1, held_bytes_max=1000, site_window=2, recent_links_max=3, unfinished_bytes_max=4)
    bound = MemoryPlan(300 * MEBIBYTE, PEER_BASE_BYTES).bound(low)
    assert (1, 1000, 2, 3, 4) == (
        *(bound.fetches_max, bound.held_bytes_max, bound.site_window),
        *(bound.recent_links_max, bound.unfinished_bytes_max),
    )


def test_the_job_cannot_raise_the_bodies_that_this_machine_holds() -> None:
    bound = MemoryPlan(LEAST, LEAF_BASE_BYTES).bound(Limits())
    pairs = (("body_bytes_max", 64 * MEBIBYTE), ("inflated_bytes_max", 1000))
    limits = limits_with(bound, pairs)
    assert (bound.held_bytes_max, 1000) == (limits.body_bytes_max, limits.inflated_bytes_max)
    assert 64 * MEBIBYTE == limits_with(Limits(), pairs).body_bytes_max


def test_without_a_bound_nothing_changes() -> None:
    assert memory_plan(config(0, "mongodb://host/crawl"), PEER_BASE_BYTES) is None


def test_too_little_memory_is_refused_with_the_least() -> None:
    assert MemoryPlan(LEAST, LEAF_BASE_BYTES).room_bytes == ROOM_LEAST_BYTES
    with pytest.raises(ConfigError, match=r"--memory 40 MB is too little: give at least 48 MB"):
        memory_plan(config(40_000_000), LEAF_BASE_BYTES)
    with pytest.raises(ConfigError, match=r"at least 55 MB"):
        memory_plan(config(LEAST), PEER_BASE_BYTES)


@pytest.mark.parametrize("job", [Job(history="bloom"), Job(history="bloom", recrawl_after_s=86_400.0)])
def test_a_bounded_history_without_room_is_refused_with_what_it_takes(job: Job) -> None:
    with pytest.raises(ConfigError, match=r"--history bloom, whose labels of cells may take \d+ MB: give at least"):
        MemoryPlan(64_000_000, PEER_BASE_BYTES).check_history(job)
    MemoryPlan(400_000_000, PEER_BASE_BYTES).check_history(job)


def test_the_usual_history_is_on_disk_and_fits() -> None:
    MemoryPlan(64_000_000, PEER_BASE_BYTES).check_history(Job())


@pytest.mark.parametrize("sink", ["parquet:out", "mongodb://host/crawl", "jsonl:s3://bucket/x", "warc:s3://bucket/x"])
def test_a_sink_with_a_large_library_is_refused(sink: str) -> None:
    with pytest.raises(ConfigError, match=r"leave out one of them, and bring the results there afterwards"):
        memory_plan(config(64_000_000, sink), PEER_BASE_BYTES)


def test_sinks_of_small_libraries_are_allowed() -> None:
    assert memory_plan(config(64_000_000, "sqlite:results.db", "jsonl:out"), PEER_BASE_BYTES) is not None
