"""The table of odd servers, by topic.

Tests: tests/scripts/test_odd_servers.py
"""

from collections.abc import Iterator, Mapping
from typing import Final

from scripts.odd_servers.behaviors import Behavior, Topic
from scripts.odd_servers.bodies import CODINGS, TIMES, TYPES
from scripts.odd_servers.heads import HEADERS, STATUS_LINES
from scripts.odd_servers.lengths import CHUNKS, LENGTHS
from scripts.odd_servers.pages import PAGES, REDIRECTS, TLS

TOPICS: Final[tuple[Topic, ...]] = (
    *(STATUS_LINES, HEADERS, LENGTHS, CHUNKS, CODINGS, TYPES, REDIRECTS, PAGES, TLS, TIMES),
)


def _numbered() -> Iterator[tuple[str, Behavior]]:
    for topic in TOPICS:
        for number, behavior in enumerate(topic.behaviors, 1):
            yield f"{topic.name}-{number}", behavior


BEHAVIORS: Final[Mapping[str, Behavior]] = dict(_numbered())
"""The behaviors by a short name, which is also a folder of the server."""
