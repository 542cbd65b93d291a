"""`PeerRow`: one peer's description of itself, for the status and for a person who watches the crawl.

Tests: tests/link/wire/test_codec.py, tests/link/wire/test_messages.py
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import PRINTABLE, SMALL_MAX, Contact, Count, LongSeconds, PeerCounters, Seconds, Small
from kadcrawl.link.wire.peer_state import PeerState, state_text

SITE_SHOWN_MAX = 100
"""Characters of the name of a site in the status."""
REFUSING_MAX = 5
"""Sites that refuse requests in the row of one peer."""

CrawlLimit = Literal["", "pages", "bytes", "time"]
"""A limit of the whole crawl: --max-pages, --max-bytes or --max-time."""


class RefusingSite(Struct, frozen=True, array_like=True):
    """A site with pending URLs that refuses requests, for a person who watches the crawl."""

    site: Annotated[str, Meta(max_length=SITE_SHOWN_MAX, pattern=PRINTABLE)]
    """The name of the site, or its begin."""
    status: Annotated[int, Meta(ge=429, le=503)]
    """Status of the last refusal, 429 or 503."""
    refusals: Small
    """Refusals in a row."""
    wait_s: Seconds
    """Seconds until the site is asked again."""


class PeerDetails(Struct, frozen=True, array_like=True):
    """The details of one peer, for a person who watches the swarm on a dashboard."""

    version: Annotated[str, Meta(max_length=20, pattern=PRINTABLE)]
    """The release of kadcrawl."""
    level: Annotated[float, Meta(ge=-SMALL_MAX, le=SMALL_MAX)]
    """The load level in blocks, above 0 for a peer that lends."""
    memory_bytes: Count
    """Memory of the process of the peer, or 0 if it is not known."""
    cells_owned: Count
    """Cells that the peer owns."""


class PeerRow(Struct, frozen=True, array_like=True):
    """One peer's description of itself."""

    contact: Contact
    state: PeerState
    pending: Count
    in_flight: Count
    uptime_s: Count
    counters: PeerCounters
    allowance: Count
    """Fetches that the peer may still begin of the budget --max-pages."""
    granted: Count
    """Fetches of that budget that the peer was ever granted."""
    lent: Count = 0
    """Pending URLs of the peer that others fetch for it at present."""
    borrowed: Count = 0
    """URLs of others that the peer fetches for them at present."""
    due_s: LongSeconds | None = None
    """Seconds until the first of its pages is due again, or None if no page is."""
    lag: Count = 0
    """Bytes of its page log, records and WARC files that its sinks have not received yet."""
    fingerprints: Count = 0
    """Fingerprints of finished URLs, its own and copies, in a job that keeps no keys of them."""
    refused_by: Count = 0
    """The number of known peers that refuse this peer's key."""
    refusing: Annotated[list[RefusingSite], Meta(max_length=REFUSING_MAX)] = []
    """The sites of the peer that refuse requests, those with the longest wait."""
    refusing_count: Count = 0
    """The number of its sites that refuse requests."""
    hosted_leaf: bool = False
    """True if a full peer shows one of its leaves by this row. `contact` has the address of that peer."""
    limit: CrawlLimit = ""
    """The limit that the crawl has reached as far as the peer knows, or an empty text."""
    bytes_granted: Count = 0
    """Bytes of bodies of the budget --max-bytes that the peer was ever granted."""
    details: PeerDetails | None = None
    """The details of the peer, if the census asks for them."""

    paused_sites: Count = 0
    """Orders that keep sites paused, as far as the peer knows."""
    grant_epoch: Count = 0
    """The number of this row among those by which the budget is shared out, or 0. A grant names the row it answers."""

    @property
    def begun(self) -> int:
        """Fetches of the budget --max-pages that the peer has used, also in earlier runs."""
        return max(0, self.granted - self.allowance)

    @property
    def state_text(self) -> str:
        """The state in words, as a person reads it."""
        return state_text(self.state, self.refused_by, hosted_leaf=self.hosted_leaf)
