"""The keys a member goes by: one, or for an hour after a change of keys the old one and the new one.

Each peer is told of the new key by its own operator, some sooner than others. So in the first half of the hour it
speaks by the old key, in the second by the new one, and listens to both all the time; whoever does not answer to one is
tried by the other. Times are those of the world, as a change outlives a restart.

Tests: tests/members/test_keys.py
"""

from dataclasses import dataclass

from kadcrawl.members.swarm_key import SwarmKey

OVERLAP_S = 3600.0
"""How long both keys are good."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """What one peer goes by."""

    key: SwarmKey
    """The only one, or the new one."""
    former: SwarmKey | None = None
    until: float = 0.0
    """When the former one is good no more, in seconds since 1970."""

    def changed(self, key: SwarmKey, now: float) -> "Keyring":
        """Return the keys after a change to `key`; the same again if it is in use already."""
        return self if key == self.key else Keyring(key, self.key, now + OVERLAP_S)

    def at(self, now: float) -> "Keyring":
        """Return what is left of it now."""
        return self if self.former is None or now < self.until else Keyring(self.key)

    def to_speak(self, now: float) -> tuple[SwarmKey, ...]:
        """Return the keys by which others may be spoken to, the one to try first."""
        if self.former is None or now >= self.until:
            return (self.key,)
        return (self.former, self.key) if now < self.until - OVERLAP_S / 2 else (self.key, self.former)

    @property
    def keys(self) -> tuple[SwarmKey, ...]:
        """All of them."""
        return (self.key,) if self.former is None else (self.key, self.former)
