"""kadcrawl: a fully decentralized web crawler.

`Peer` is one peer of a swarm, to be embedded in an asyncio program, `Leaf` one that nobody can connect to; `Config` is
what it needs to know of its machine, `Job` what the swarm crawls, `SwarmKey` what lets a peer in. Everything kadcrawl
raises on purpose is a `KadcrawlError`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kadcrawl.errors import ConfigError, KadcrawlError, RemoteError, StartError, StorageError
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.version import VERSION as __version__

if TYPE_CHECKING:
    from kadcrawl.crawl.content.page import Page
    from kadcrawl.leaf.leaf import Leaf
    from kadcrawl.peer import Peer

_LATE = {"Leaf": "kadcrawl.leaf.leaf", "Page": "kadcrawl.crawl.content.page", "Peer": "kadcrawl.peer"}
"""Loaded when first asked for (PEP 562): whoever needs only some rooms or words of kadcrawl need not wait for all."""

__all__ = [
    "Config",
    "ConfigError",
    "Job",
    "KadcrawlError",
    "Leaf",
    "Limits",
    "Page",
    "Peer",
    "RemoteError",
    "StartError",
    "StorageError",
    "SwarmKey",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
