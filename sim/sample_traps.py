"""A site that is nothing but traps, as a function: from each page on, there is always one more. No I/O.

Six servers' ways of making up URLs without end, each of which another bound of a crawler ends; and which URLs a
crawler with these bounds fetches all the same. Every trap is one chain, or pages that all link to each other, so that
this does not depend on the order in which a crawler walks through it. Shares no code with kadcrawl.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from .sample_pages import NOT_FOUND, Resource, SampleResponse, document

NAME: Final = "labyrinth"
ITEMS: Final = 10
"""Pages of the shop."""
FACETS: Final = 40
"""Filters of a list: fewer than the parameters a query may have, with about 10^12 combinations."""

_FACET: Final = re.compile(r"facet(\d{1,2})=on")
_SESSION: Final = re.compile(r";jsessionid=[0-9a-f]{32}")


class Bounds(NamedTuple):
    """The limits at which a crawler stops."""

    path_segments: int = 32
    path_repeats: int = 3
    query_parameters: int = 50
    path_queries: int = 60
    site_pages: int = 250


def resource(path: str) -> Resource | None:
    """Return the resource at `path` (with its query), or None."""
    links = _links(path)
    if links is None:
        return Resource(answers=(NOT_FOUND,)) if path == "/robots.txt" else None
    body = "\n".join(f'<p><a href="{link}">on</a></p>' for link in links)
    return Resource(answers=(SampleResponse(body=document("", NAME, body).encode()),))


def paths(bounds: Bounds) -> list[str]:
    """Return the paths, with robots.txt, that a crawler with these limits fetches if it removes session IDs from
    links."""
    finite = ["/", *(f"/shop/{item}" for item in range(ITEMS))]
    finite += ["/halls" + "/east/west" * times for times in range(bounds.path_repeats + 1)]
    finite += [_down(steps) for steps in range(bounds.path_segments)]
    finite += [_sieve(steps) for steps in range(bounds.query_parameters + 1)]
    finite += [_choice(number) for number in range(bounds.path_queries + 1)]
    # The calendar has no end of its own: it gets what the others leave of the site's share.
    days = bounds.site_pages - len(finite)
    assert bounds.path_queries > bounds.query_parameters, "or it would end the sieve"
    assert days > bounds.path_queries + 1, "the calendar must not end before the longest of the others"
    return ["/robots.txt", *finite, *(f"/calendar/{day}" for day in range(days))]


def left_out() -> dict[str, int]:
    """Return how many links each bound ends, and how many have a session ID."""
    return {
        "path_queries": 1,
        "path_repeats": 1,
        "path_segments": 1,
        "query_parameters": 1,
        "session_id": 1 + ITEMS * ITEMS,
        "site_pages": 1,
    }


def _links(path: str) -> Iterator[str] | list[str] | None:
    """Return the links of the page at `path`, or None if there is no such page."""
    match path.partition("?")[0].split("/")[1:]:
        case [""]:
            return ["/calendar/0", "/halls", _down(0), _sieve(0), _choice(0), _item(path, 0)]
        case ["calendar", day] if day.isdecimal():
            return [f"/calendar/{int(day) + 1}"]
        case ["halls", *halls] if "/".join(halls) == "/".join(["east", "west"] * (len(halls) // 2)):
            # As a link that lacks its first slash leads on, where the server looks at the first word only.
            return [f"{path}/east/west"]
        case ["down", *steps] if path == _down(len(steps)):
            return [_down(len(steps) + 1)]
        case ["sieve"] if path == _sieve(path.count("=")):
            return [_sieve(path.count("=") + 1)]
        case ["list"] if path == _choice(number := sum(1 << int(facet) for facet in _FACET.findall(path))):
            return [_choice(number + 1)]
        case ["shop", _] if re.fullmatch(r"/shop/\d", _SESSION.sub("", path)):
            return (_item(path, item) for item in range(ITEMS))
    return None


def _down(steps: int) -> str:
    return "/down" + "".join(f"/{step}" for step in range(steps))


def _sieve(steps: int) -> str:
    return "/sieve" + ("?" + "&".join(f"mesh{step}=fine" for step in range(steps)) if steps else "")


def _choice(number: int) -> str:
    """Return the link to the list with those facets chosen that are the bits of `number`."""
    chosen = "&".join(f"facet{facet}=on" for facet in range(FACETS) if number >> facet & 1)
    return f"/list?{chosen}" if chosen else "/list"


def _item(page: str, item: int) -> str:
    """Return the link of a page to an item: with a session ID no other page has."""
    return f"/shop/{item};jsessionid={sha256(f'{page} {item}'.encode()).hexdigest()[:32]}"
