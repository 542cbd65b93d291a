"""kadcrawl: a fully decentralized web crawler.

`Peer` is one peer of a swarm, for use in an asyncio program. `Leaf` is a peer that accepts no connections.
`SharedProcess` lets many peers share one process. `Config`
describes the machine, `Job` the crawl, and `SwarmKey` admits a peer to the swarm. Every error that kadcrawl raises on
purpose is a `KadcrawlError`.
"""

from importlib import import_module

from kadcrawl.version import VERSION as __version__

TYPE_CHECKING = False
"""True to type checkers. The module `typing` would take half of the time of this import."""

if TYPE_CHECKING:
    from kadcrawl.crawl.content.page import Page
    from kadcrawl.errors import ConfigError, KadcrawlError, RemoteError, StartError, StorageError
    from kadcrawl.leaf.leaf import Leaf
    from kadcrawl.link.wire.given_order import GivenOrder
    from kadcrawl.members.swarm_key import SwarmKey
    from kadcrawl.peer import Peer
    from kadcrawl.peer.crawl_status import CrawlStatus, DroppedUrls, PeerStatus, RetriedUrls
    from kadcrawl.peer.queue_status import QueueStatus, SiteQueue, WaitingUrl
    from kadcrawl.peer.shared_process import SharedProcess
    from kadcrawl.settings.config import Config
    from kadcrawl.settings.job import Job
    from kadcrawl.settings.limits import Limits
    from kadcrawl.settings.page_rules import Field, RecordRule, RoleRule
    from kadcrawl.settings.proxy_list import ProxyPool
    from kadcrawl.settings.secrets import Secrets
    from kadcrawl.settings.site_login import SiteLogin
    from kadcrawl.settings.site_rules import SiteRule

_LATE = {
    "Config": "kadcrawl.settings.config",
    "ConfigError": "kadcrawl.errors",
    "CrawlStatus": "kadcrawl.peer.crawl_status",
    "DroppedUrls": "kadcrawl.peer.crawl_status",
    "Field": "kadcrawl.settings.page_rules",
    "GivenOrder": "kadcrawl.link.wire.given_order",
    "Job": "kadcrawl.settings.job",
    "KadcrawlError": "kadcrawl.errors",
    "Leaf": "kadcrawl.leaf.leaf",
    "Limits": "kadcrawl.settings.limits",
    "Page": "kadcrawl.crawl.content.page",
    "Peer": "kadcrawl.peer",
    "PeerStatus": "kadcrawl.peer.crawl_status",
    "ProxyPool": "kadcrawl.settings.proxy_list",
    "QueueStatus": "kadcrawl.peer.queue_status",
    "RecordRule": "kadcrawl.settings.page_rules",
    "RemoteError": "kadcrawl.errors",
    "RetriedUrls": "kadcrawl.peer.crawl_status",
    "RoleRule": "kadcrawl.settings.page_rules",
    "Secrets": "kadcrawl.settings.secrets",
    "SharedProcess": "kadcrawl.peer.shared_process",
    "SiteLogin": "kadcrawl.settings.site_login",
    "SiteQueue": "kadcrawl.peer.queue_status",
    "SiteRule": "kadcrawl.settings.site_rules",
    "StartError": "kadcrawl.errors",
    "StorageError": "kadcrawl.errors",
    "SwarmKey": "kadcrawl.members.swarm_key",
    "WaitingUrl": "kadcrawl.peer.queue_status",
}
"""Names that are imported on first use (PEP 562), so that programs with only a part of kadcrawl start fast.

The command begins at once, too, and understands Ctrl-C while it imports the rest (cli/early_interrupt.py).
"""

__all__ = [
    "Config",
    "ConfigError",
    "CrawlStatus",
    "DroppedUrls",
    "Field",
    "GivenOrder",
    "Job",
    "KadcrawlError",
    "Leaf",
    "Limits",
    "Page",
    "Peer",
    "PeerStatus",
    "ProxyPool",
    "QueueStatus",
    "RecordRule",
    "RemoteError",
    "RetriedUrls",
    "RoleRule",
    "Secrets",
    "SharedProcess",
    "SiteLogin",
    "SiteQueue",
    "SiteRule",
    "StartError",
    "StorageError",
    "SwarmKey",
    "WaitingUrl",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
