"""The valid swarm keys of a member: one, or for an hour after a change of keys the old and the new key.

Each peer gets the new key from its own operator, some sooner than others. So in the first half of the hour a peer sends
by the old key, in the second half by the new key, and accepts both all the time. A peer that does not answer to one key
is tried by the other. Times are wall-clock times, as a change outlives a restart.

Tests: tests/members/test_keys.py
"""

from dataclasses import dataclass

from kadcrawl.members.swarm_key import SwarmKey

OVERLAP_S = 3600.0
"""Time for which both keys are valid."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """The swarm keys of one peer."""

    key: SwarmKey
    """The only key, or the new key."""
    former: SwarmKey | None = None
    until: float = 0.0
    """The end of the former key's validity, in seconds since 1970."""

    def changed(self, key: SwarmKey, now: float) -> "Keyring":
        """Return the keyring after a change to `key`, or the same keyring if `key` is in use already."""
        return self if key == self.key else Keyring(key, self.key, now + OVERLAP_S)

    def at(self, now: float) -> "Keyring":
        """Return the keyring with the keys that are valid at `now`."""
        return self if self.former is None or now < self.until else Keyring(self.key)

    def to_speak(self, now: float) -> tuple[SwarmKey, ...]:
        """Return the keys to send by, the first to try first."""
        if self.former is None or now >= self.until:
            return (self.key,)
        return (self.former, self.key) if now < self.until - OVERLAP_S / 2 else (self.key, self.former)

    @property
    def keys(self) -> tuple[SwarmKey, ...]:
        """All keys."""
        return (self.key,) if self.former is None else (self.key, self.former)
