"""Messages that bring discovered links to their owners.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import BATCH_MAX, Contact, Fingerprint, LongSeconds, Message, Small, Trail, Url


class Link(Struct, frozen=True, array_like=True):
    """A discovered URL on its way to its owner."""

    url: Url
    depth: Small
    """Links away from the nearest seed, along the path it was found."""
    hops: Small
    """Redirects in a row that led here."""
    trail: Trail = b""
    """Hashes of the URLs of these redirects, in order (crawl/content/redirects.py). A wrong hash costs a reason in a
    page line."""


class Offer(Message, frozen=True):
    """Links for their owner. Answered by Accepted. A repeat finds the links known and changes nothing."""

    links: Annotated[list[Link], Meta(max_length=BATCH_MAX)]
    seeds_fingerprint: Fingerprint = 0
    """Fingerprint of the sender's seeds (peer/swarm/swarm_state.py): a link out of scope by other seeds may be in scope
    by these.
    """


class DatedLink(Link, frozen=True):
    """A link of a sitemap with the date of its page's last change."""

    modified: LongSeconds | None = None
    """Wall-clock second of the last change, or None if unknown."""


class DatedOffer(Message, frozen=True):
    """An Offer whose links may have dates, for jobs that fetch pages again. Answered by Accepted.

    A repeat brings no page forward twice, as a page that is due soon stays as it is (crawl/recrawl/policy.py).
    """

    links: Annotated[list[DatedLink], Meta(max_length=BATCH_MAX)]
    seeds_fingerprint: Fingerprint = 0


class Redirect(Struct, frozen=True, array_like=True):
    """The link at `index` of an offer belongs to another peer: `owner`."""

    index: Annotated[int, Meta(ge=0, lt=BATCH_MAX)]
    owner: Contact


class Accepted(Message, frozen=True):
    """The answer to an offer: all its links are journaled here, except those redirected. Ask their owners, possibly
    this peer again.
    """

    redirects: Annotated[list[Redirect], Meta(max_length=BATCH_MAX)]
