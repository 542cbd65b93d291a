"""The most specific match of a host in a table by matches, as site rules and the orders of a person have them.

A match is a host, a host with its port, or `*.` and a domain, which holds for the domain and all hosts below it.

Tests: tests/settings/test_site_settings.py, tests/settings/test_steering.py
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


def most_specific(table: Mapping[str, Value], authority: str) -> Value | None:
    """Return the value of the most specific match for a host with or without its port, or None."""
    return next(matching(table, authority), None)


def matching(table: Mapping[str, Value], authority: str) -> Iterator[Value]:
    """Yield the values of all matches for a host with or without its port, the most specific first."""
    if (value := table.get(authority)) is not None:
        yield value
    host, colon, port = authority.rpartition(":")
    if colon and port.isdecimal() and (value := table.get(host)) is not None:
        yield value
    name = host if colon and port.isdecimal() else authority
    while name:
        if (value := table.get(f"*.{name}")) is not None:
            yield value
        name = name.partition(".")[2]


def lies_below(match: str, other: str) -> bool:
    """Return whether all hosts of a match are also hosts of another match."""
    name, _, _ = match.removeprefix("*.").partition(":") if not match.startswith("[") else (match, "", "")
    if other.startswith("*."):
        return match != other and f".{name}".endswith(other[1:])
    return match != other and match.startswith(f"{other}:")
