"""The settings of the job that a person may change while the crawl runs. A decision: no I/O.

The changes are standing orders (peer/swarm/standing_orders.py), so the latest counts at each peer. The job itself stays
as it began: peers that join take the job, and the changes with the orders.

Tests: tests/settings/test_job_changes.py
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kadcrawl.errors import ConfigError
from kadcrawl.settings.durations import shown as shown_time
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import KEYS, in_keys
from kadcrawl.settings.near_names import near_names
from kadcrawl.settings.units import bytes_of, seconds_of, shown_size

VALUE_MAX = 2.0**53
"""Largest value of a setting in an order."""
DEFAULT = "default"
"""The word by which a person goes back to the setting with which the crawl began."""


@dataclass(frozen=True, slots=True)
class _Changeable:
    """A setting that may change."""

    field: str
    """The field of the job."""
    read: Callable[[str], float]
    """Reads what a person types. Raises ValueError."""
    shown: Callable[[float], str]
    is_whole: bool = True
    """The value is a whole number."""
    must_be_set: str = ""
    """The reason for which the crawl must have begun with the setting, or an empty text."""


def _count(text: str) -> float:
    if not text.isdecimal():
        raise ValueError(f"{text!r:.40} is no whole number")
    return float(text)


def _shown_count(value: float) -> str:
    return f"{value:.0f}"


_SHARED = "what its peers have used up was not counted"
CHANGEABLE: Mapping[str, _Changeable] = {
    "delay": _Changeable("delay_s", seconds_of, shown_time, is_whole=False),
    "retries": _Changeable("retries", _count, _shown_count),
    "refusals": _Changeable("refusals_max", _count, _shown_count),
    "max-site-pages": _Changeable("site_pages_max", _count, _shown_count),
    "max-pages": _Changeable("max_pages", _count, _shown_count, must_be_set=_SHARED),
    "max-bytes": _Changeable("max_bytes", bytes_of, lambda value: shown_size(int(value)), must_be_set=_SHARED),
    "max-time": _Changeable(
        "max_time_s", seconds_of, shown_time, is_whole=False, must_be_set="the time of its peers was not counted"
    ),
}
"""The settings that may change, by the name of their option."""
_WHY_FIXED = {
    "max-depth": "links beyond the depth were not kept. Stop the crawl, and run the same command with another "
    "--max-depth. Then `kadcrawl add --again` fetches pages again, and follows their links",
    "max-path-queries": "links beyond the limit were not kept, and cannot be found again",
    "scope": "its peers have judged links by it; `kadcrawl scope add` brings hosts into the crawl",
    "include": "its peers have judged links by it; `kadcrawl scope` changes the scope of a running crawl",
    "exclude": "its peers have judged links by it; `kadcrawl scope` changes the scope of a running crawl",
    "seeds": "`kadcrawl add` adds seeds",
    "partition": "it decides which peer owns which URL",
    "history": "it decides what the journals of all peers hold",
    "copies": "it decides which peers hold the copies of each URL",
}


def value_of(name: str, text: str) -> float | None:
    """Return the value that a person types for a setting, or None to go back to that of the job. Raises ConfigError."""
    setting = _setting(name)
    if text.lower() == DEFAULT:
        return None
    try:
        value = setting.read(text)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    check_change(Job(), name, value, even_unset=True)
    return value


def check_change(job: Job, name: str, value: float | None, *, even_unset: bool = False) -> None:
    """Raise ConfigError unless this setting of a running job may become this value, or its own again."""
    setting = _setting(name)
    if setting.must_be_set and getattr(job, setting.field) is None and not even_unset:
        raise ConfigError(
            f"the crawl began without --{name}, and {setting.must_be_set}: stop it, and go on with the same command "
            f"and --{name}"
        )
    if value is not None:
        try:
            _with(job, setting, value)
        except ConfigError as error:
            raise ConfigError(in_keys(str(error))) from None


def changed(job: Job, values: Mapping[str, float]) -> Job:
    """Return the job with these changes, as far as they have a meaning: a member of the swarm may tell anything."""
    for name, value in values.items():
        setting = CHANGEABLE.get(name)
        if setting is None or (setting.must_be_set and getattr(job, setting.field) is None):
            continue
        try:
            job = _with(job, setting, value)
        except ConfigError:
            continue
    return job


def shown_value(name: str, value: float) -> str:
    """Return a value as a person types it."""
    setting = CHANGEABLE.get(name)
    return f"{value:g}" if setting is None else setting.shown(value)


def _with(job: Job, setting: _Changeable, value: float) -> Job:
    """Return a job with a changed setting. Raises ConfigError if no job may have that value."""
    if not 0 <= value <= VALUE_MAX or (setting.is_whole and value != int(value)):
        raise ConfigError(f"{setting.field} cannot be {value:g}: give a whole number")
    fields: dict[str, Any] = {setting.field: int(value) if setting.is_whole else value}
    return replace(job, **fields)


def _setting(name: str) -> _Changeable:
    setting = CHANGEABLE.get(name)
    if setting is None:
        names = ", ".join(CHANGEABLE)
        if name not in _WHY_FIXED and name not in KEYS:
            meant = "".join(f", did you mean {near}?" for near in near_names(name, CHANGEABLE)) or "."
            raise ConfigError(f"there is no setting {name!r:.60}{meant} These can change: {names}")
        why = _WHY_FIXED.get(name, "its peers work by the value with which they began")
        raise ConfigError(f"{name} cannot change while the crawl runs: {why}. These can: {names}")
    return setting
