"""The sentence about settings that a crawl keeps from an earlier command on its directory.

Tests: tests/cli/view/test_standing_settings.py
"""

from collections.abc import Container, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from kadcrawl.settings.durations import shown as shown_time
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_changes import CHANGEABLE, changed
from kadcrawl.settings.job_file import DURATIONS, KEYS, PROXIES, SIZES
from kadcrawl.settings.units import shown_size
from kadcrawl.system.printable import printable

UNNAMED = frozenset({"seeds", "contact", "cell_bits", "shared_limits"})
"""Fields of the job that are not named: others tell of them, or nobody chose them."""
WITHOUT_VALUE = frozenset(
    {"headers", "proxies", "proxies_from", "proxy_judge", "ca_pem", "roles", "records", "pools", "sites"}
)
"""Fields whose values are long, or may be secret."""
NO_ORDERS: Mapping[str, float] = MappingProxyType({})
"""The changes of a job that no order changed."""
VALUE_SHOWN_MAX = 60
"""Limit on the characters of a value in the sentence."""


def standing_settings(journaled: Job, replaced: Container[str], orders: Mapping[str, float] = NO_ORDERS) -> str:
    """Return the sentence about the settings of an earlier command that stand, or an empty text without any.

    `replaced` has the fields of the job that the present command or its job file sets. `orders` has the settings that
    orders change, by name: an order holds whatever a command sets.
    """
    job, usual, options = changed(journaled, orders), Job(), {key.field: f"--{name}" for name, key in KEYS.items()}
    ordered = {setting.field for name, setting in CHANGEABLE.items() if name in orders}
    options["proxies_from"] = f"--{PROXIES}"
    standing = [
        _shown(options.get(name, f"[[{name}]]"), name, value) + (" (by an order)" if name in ordered else "")
        for name in (one.name for one in fields(Job))
        if name not in UNNAMED
        and (name not in replaced or name in ordered)
        and (value := getattr(job, name)) != getattr(usual, name)
    ]
    return f"settings of the earlier command that stand: {', '.join(standing)}" if standing else ""


def _shown(option: str, field: str, value: Any) -> str:
    """Return an option with its value, as a command takes it."""
    key = option.removeprefix("--")
    if field in WITHOUT_VALUE or isinstance(value, bool):
        return option
    if key in DURATIONS:
        said = shown_time(value)
    elif key in SIZES:
        said = shown_size(value).removesuffix("bytes").replace(" ", "")  # Or a shell would take it for two words.
    else:
        said = " ".join(value) if isinstance(value, tuple) else str(value)
    said = printable(said)
    return f"{option} {said if len(said) <= VALUE_SHOWN_MAX else said[:VALUE_SHOWN_MAX] + '...'}"
