"""Messages by which a person looks at the queue of a swarm: its pending URLs by site, depth and age.

Each peer counts the URLs of its own cells, and a wave adds the counts up on its way back (overlay/waves/queue_sum.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import PRINTABLE, Count, IdBytes, LongSeconds, Message, Small, Url
from kadcrawl.link.wire.order_messages import STANDING_ORDERS_MAX, StandingOrder
from kadcrawl.link.wire.peer_row import SITE_SHOWN_MAX

QUEUED_SITES_MAX = 100
"""Sites in one answer: those with the most pending URLs."""
QUEUED_URLS_MAX = 100
"""URLs of one site in one answer: those that are next."""
DEPTHS_MAX = 64
"""Depths that are counted apart. Deeper URLs count as the last of them."""
AGES_S = (60, 600, 3_600, 86_400, 604_800)
"""Ages in seconds by which URLs are counted: up to each of them, and above."""
SITE_CHARS_MAX = 500
"""Characters of the name of a site in a question."""


class QueuedSite(Struct, frozen=True, array_like=True):
    """A site with pending URLs."""

    site: Annotated[str, Meta(max_length=SITE_SHOWN_MAX, pattern=PRINTABLE)]
    """The name of the site, or its begin. With partition `url`, a host."""
    pending: Count
    """URLs not finished."""
    owner: IdBytes
    """The owner with the most of them."""
    owners: Small = 1
    """Peers that own URLs of the site: more than 1 only with partition `url`, and while a cell moves."""
    status: Annotated[int, Meta(ge=0, le=999)] = 0
    """Status of the last answer to the owner, or 0 if it is not known."""
    delay_s: LongSeconds = 0.0
    """Least seconds between two requests."""
    wait_s: LongSeconds = 0.0
    """Seconds before the site may be asked again."""
    refusals: Small = 0
    """Answers 429 or 503 in a row."""


class QueuedUrl(Struct, frozen=True, array_like=True):
    """A pending URL."""

    url: Url
    depth: Small
    """Number of links from the nearest seed."""
    tries: Small
    """Fetches that failed temporarily so far."""
    wait_s: LongSeconds
    """Seconds before the URL may be tried again, beside the wait of its site."""


class QueueCounts(Struct, frozen=True, array_like=True):
    """The queue of one peer, or of some peers together."""

    pending: Count = 0
    """URLs not finished."""
    sites: Count = 0
    """Sites with pending URLs."""
    by_depth: Annotated[list[Count], Meta(max_length=DEPTHS_MAX)] = field(default_factory=list)
    """Pending URLs by depth, from 0 on."""
    by_age: Annotated[list[Count], Meta(max_length=len(AGES_S) + 1)] = field(default_factory=list)
    """Pending URLs by the time since their owner has them, as `AGES_S`."""
    top: Annotated[list[QueuedSite], Meta(max_length=QUEUED_SITES_MAX)] = field(default_factory=list)
    """The sites with the most pending URLs, those first, or the site that was asked about."""
    next: Annotated[list[QueuedUrl], Meta(max_length=QUEUED_URLS_MAX)] = field(default_factory=list)
    """The next URLs of the site that was asked about."""
    age_s: LongSeconds = 0.0
    """Seconds since the oldest of these counts was made."""


class SurveyQueue(Message, frozen=True):
    """A wave's question for the queue. A repeat changes nothing.

    Counting may take a while: as long as `Tally.retrying` counts a peer, its queue is missing, and the asker repeats.
    """

    site: Annotated[str, Meta(max_length=SITE_CHARS_MAX)] = ""
    """The site whose URLs count, or empty for all sites."""
    sites: Annotated[int, Meta(ge=0, le=QUEUED_SITES_MAX)] = 20
    """Sites wanted."""
    urls: Annotated[int, Meta(ge=0, le=QUEUED_URLS_MAX)] = 0
    """Next URLs wanted. They need a site."""


class GetQueue(Message, frozen=True):
    """A command asks for the queue of the swarm. Answered by Queue. A repeat is answered again."""

    survey: SurveyQueue
    """The question of the wave."""


class Queue(Message, frozen=True):
    """The answer to GetQueue: the queue of all peers that answered."""

    counts: QueueCounts
    """The sum of the queues."""
    parts_missing: Count
    """Parts of the swarm that did not answer."""
    peers_counting: Count
    """Peers that have not counted their queue yet."""
    orders: Annotated[list[StandingOrder], Meta(max_length=STANDING_ORDERS_MAX)] = field(default_factory=list)
    """The standing orders."""
