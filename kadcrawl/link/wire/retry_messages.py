"""Messages by which a person has failed URLs fetched again (peer/swarm/retry_orders.py).

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kadcrawl.link.wire.basics import BATCH_MAX, REASONS_MAX, URL_CHARS_MAX, Count, Message, Reason, Reasons, Url

RETRY_ORDERS_MAX = 200
"""Orders to retry that a swarm remembers. Beyond that, it forgets the oldest."""

MaybeUrl = Annotated[str, Meta(max_length=URL_CHARS_MAX)]


class RetryOrder(Struct, frozen=True, array_like=True):
    """An order to fetch failed URLs again. It applies once to each URL that failed where the order was not known."""

    stamp: Count
    """The giver's clock in milliseconds since 1970, but later than all orders to retry known there."""
    reasons: Annotated[tuple[Reason, ...], Meta(max_length=REASONS_MAX)] = ()
    """Reasons of failures, as counted or as in the page line. Without any, all reasons count."""
    site: MaybeUrl = ""
    """The host, domain or site of the URLs, or empty for all sites."""
    url: MaybeUrl = ""
    """The one URL, or empty for all URLs."""


class Retry(Message, frozen=True):
    """A wave's order to retry. A repeat changes nothing, and its answers count on (`Tally.retried`)."""

    order: RetryOrder
    """The order with its stamp."""


class RetryFailed(Message, frozen=True):
    """A command has failed URLs fetched again. Answered by Retried. A repeat is another order."""

    order: RetryOrder
    """The order without a stamp: the asked peer gives the stamp."""


class Retried(Message, frozen=True):
    """The answer to RetryFailed: the URLs that have become pending again, as far as the order has spread."""

    urls: Reasons
    """The number of URLs, by the reason of their failure."""
    cells_left: Count
    """Cells in which failed URLs are still being looked for."""
    parts_missing: Count
    """Parts of the swarm that did not answer. They hear of the order when they can be reached."""


AgainOutcome = Literal["again", "pending", "done", "unknown", "later"]
"""The outcome for a URL that is to be fetched again: it has become pending again, it was pending, it stays done, it was
never met, or its owner is to be asked later."""


class FetchAgain(Message, frozen=True):
    """A peer asks an owner to fetch these URLs again. Answered by FetchedAgain.

    A repeat with the same stamp begins no second round.
    """

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]
    stamp: Count
    """Stamp of the order, as of RetryOrder."""
    only_failed: bool
    """URLs that did not fail stay done."""


class FetchedAgain(Message, frozen=True):
    """The answer to FetchAgain: the outcome for each URL, once the backups have the records as well."""

    outcomes: Annotated[list[AgainOutcome], Meta(max_length=BATCH_MAX)]
    """Outcomes in the order of the URLs."""


class AddAgain(Message, frozen=True):
    """A command adds seeds, and has those fetched again that are done. Answered by AddedAgain.

    A repeat is another order.
    """

    urls: Annotated[list[Url], Meta(max_length=BATCH_MAX)]


class AddedAgain(Message, frozen=True):
    """The answer to AddAgain: the number of URLs that have become pending again, and of those that were pending."""

    again: Count
    """URLs that were done."""
    pending: Count
    """URLs that are new, or were pending already."""
