"""Messages of a peer that was away for a moment: have others taken it for dead meanwhile?

A peer whose process was stopped or whose event loop was held up asks its siblings before it goes on. No instant
travels, so the clocks of two machines may differ.

Tests: tests/link/wire/test_messages.py, tests/replication/test_absence_check.py
"""

from kadcrawl.link.wire.basics import Contact, LongSeconds, Message


class WasAway(Message, frozen=True):
    """A peer that was away asks a sibling: have you noticed, or has another peer come meanwhile?

    Answered by AbsenceSeen. A repeat is answered again.
    """

    peer: Contact
    away_s: LongSeconds
    """Seconds since the asker last knew that it runs."""


class AbsenceSeen(Message, frozen=True):
    """The answer to WasAway. If `noticed`, other peers may own cells of the asker by now."""

    noticed: bool
