"""`Grant`: the shares of the budget --max-pages or --max-bytes, spread by wave.

Tests: tests/link/wire/test_messages.py
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from kadcrawl.link.wire.basics import ROWS_MAX, Count, IdBytes, Message


class Grant(Message, frozen=True):
    """Shares of the budget --max-pages or --max-bytes by wave: the total fetches or bytes that each listed peer is
    granted (crawl/page_budget.py, crawl/byte_budget.py).

    Totals, not additions, so that a repeat changes nothing. `spent` says that nothing is left for any peer.
    """

    totals: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)]
    spent: bool
    unit: Literal["pages", "bytes"] = "pages"
    epochs: Annotated[dict[IdBytes, Count], Meta(max_length=ROWS_MAX)] = field(default_factory=dict)
    """Peer -> the epoch of the row by which its total was decided. Without one a total replaces any known total."""
