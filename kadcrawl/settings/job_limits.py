"""The limits that belong to the job: all peers of a swarm must share them, as they decide what is crawled and how.

`Limits` has the defaults. A job names only limits that differ, as pairs of a name and a value, and these win over the
`Config` of each peer. Since a job may come from another member, each has a largest value. The other limits are about
the resources of one machine (`OF_MACHINE`), or only a program may change them (`OF_PROGRAM`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from kadcrawl.settings.limits import Limits, require

MEBIBYTE = 1024 * 1024
DAY_S = 86_400

LimitPairs = tuple[tuple[str, float], ...]
"""Names and values of limits."""

OF_JOB: dict[str, float] = {
    "url_chars_max": 8192,
    "links_per_page_max": 1_000_000,
    "sitemap_urls_max": 1_000_000,
    "header_bytes_max": MEBIBYTE,
    "body_bytes_max": 1024 * MEBIBYTE,
    "inflated_bytes_max": 2048 * MEBIBYTE,
    "robots_ttl_s": 30 * DAY_S,
    "robots_retry_s": 3600,
    "robots_tries_max": 20,
    "robots_dead_s": DAY_S,
    "crawl_delay_max_s": DAY_S,
    "connect_timeout_s": 3600,
    "fetch_timeout_s": DAY_S,
    "idle_timeout_s": 3600,
    "rate_min_bytes_s": MEBIBYTE,
    "rate_grace_s": 3600,
    "redirects_max": 100,
    "retry_base_s": 3600,
    "retry_after_max_s": DAY_S,
    "back_off_s": DAY_S,
    "back_off_max_s": DAY_S,
    "site_connections_max": 64,
    "record_page_bytes_max": 256 * MEBIBYTE,
    "record_bytes_max": 64 * MEBIBYTE,
    "records_per_page_max": 100_000,
    "record_time_s": 3600,
}
"""The limits of a job with their largest values."""
OF_MACHINE = (
    *("large_body_bytes", "large_bodies_max", "large_rate_min_bytes_s", "large_contents_max", "robots_cached_max"),
    *("robots_cached_bytes_max", "proxy_verify_s", "proxy_retry_s", "proxy_source_s", "fetches_max", "unfinished_max"),
    *("unfinished_bytes_max", "active_sites_max", "site_window", "recent_links_max", "recent_chars_max"),
    *("commit_spacing_s", "warc_bytes_max", "pages_bytes_max", "record_memory_bytes", "memory_bytes", "held_bytes_max"),
    *("remembered_tags_max", "remembered_chars_max", "journal_cache_bytes", "filters_bytes_max", "disk_reserve_bytes"),
)
"""The limits of one machine, which may differ from peer to peer."""
OF_PROGRAM = ("message_bytes_max", "batch_links_max", "batch_spacing_s")
"""The limits on messages between peers. A wrong value breaks a swarm, so only a program can set them."""

_INTEGERS = frozenset(entry.name for entry in fields(Limits) if entry.type is int)


def check_limits(pairs: Sequence[tuple[str, float]]) -> None:
    """Raise ConfigError unless these are limits of a job, each once and within its bounds."""
    require(len({name for name, _ in pairs}) == len(pairs), "a limit stands twice in the job")
    for name, value in pairs:
        require(name in OF_JOB, f"{name!r:.60} is no limit of a job")
        check_limit(name, value)


def check_limit(name: str, value: float) -> None:
    """Raise ConfigError unless this is a possible value of a limit."""
    require(name not in OF_JOB or value <= OF_JOB[name], f"{name} must be at most {OF_JOB.get(name, 0):g}")
    require(name not in _INTEGERS or float(value).is_integer(), f"{name} must be a whole number")
    require(name not in _INTEGERS or value < 2**53, f"{name} must be less than 2^53")
    limits_with(Limits(), ((name, value),))


def limits_with(limits: Limits, pairs: Iterable[tuple[str, float]]) -> Limits:
    """Return these limits with other values for some of them. Raises ConfigError if they contradict each other."""
    values: dict[str, Any] = {name: typed(name, value) for name, value in pairs}
    made = replace(limits, **values) if values else limits
    if held := made.held_bytes_max:  # Of this machine, whatever the job allows.
        made = replace(
            made,
            body_bytes_max=min(made.body_bytes_max, held),
            inflated_bytes_max=min(made.inflated_bytes_max, held),
        )
    return made


def typed(name: str, value: float) -> float:
    """Return the value of a limit as `Limits` has it: whole numbers are integers."""
    return int(value) if name in _INTEGERS else value
