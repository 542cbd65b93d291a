"""Messages by which a person follows one URL: any peer finds the owner, and the owner tells what it knows.

Tests: tests/link/wire/test_messages.py, tests/peer/swarm/test_find_url.py
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from kadcrawl.link.wire.basics import PRINTABLE, Contact, LongSeconds, Message, Reason, Small, Url

HOLDERS_TOLD_MAX = 20
"""Backups in one answer."""

UrlState = Literal["unknown", "pending", "under way", "done", "failed", "finished"]
"""The state of a URL at its owner: not met, waiting, with the crawler or a borrower, fetched, or given up.

A history of fingerprints says of a URL only that it is finished: fetched or given up.
"""


class FindUrl(Message, frozen=True):
    """A person asks about a URL. Answered by UrlFound. A repeat is answered again."""

    url: Url
    here: bool = False
    """The asked peer answers from its own records. Otherwise it asks the owner."""


class UrlFound(Message, frozen=True):
    """The answer to FindUrl: the place and the state of a URL."""

    owner: Contact
    """The peer that crawls the URL."""
    backups: Annotated[list[Contact], Meta(max_length=HOLDERS_TOLD_MAX)] = field(default_factory=list)
    """The other peers that hold its records."""
    state: UrlState = "unknown"
    """The state of the URL."""
    reason: Reason = ""
    """The reason of its failure, or an empty text."""
    depth: Small = 0
    """Number of links from the nearest seed, if it is pending."""
    tries: Small = 0
    """Fetches that failed temporarily so far, if it is pending."""
    rounds: Small = 0
    """Earlier rounds in which it was finished."""
    due_at: LongSeconds | None = None
    """Second since 1970 before which it is not fetched, or from which it is due again."""
    captured: Annotated[str, Meta(max_length=40, pattern=PRINTABLE)] = ""
    """The WARC-Date of its last body, if it is kept."""
