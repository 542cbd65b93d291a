"""The path of the link, and the type of the functions that answer its requests.

The server is not imported by the parts of a leaf, which answers nobody.

Tests: tests/link/test_link.py
"""

from collections.abc import Awaitable, Callable
from typing import Any

from kadcrawl.link.wire.messages import Message

LINK_PATH = "/kadcrawl/3"
Handler = Callable[[Any], Awaitable[Message]]
