"""The error tree: who is at fault decides what happens next.

Four kinds of failure (and no others): the caller's mistake is a ``ValueError`` that says what to do;
the remote's fault is a `RemoteError` (count it, drop it, go on); the world's trouble is retried by policy;
a bug of ours is an ``assert`` with a sentence.

Tests: tests/link/test_link.py, tests/store/test_store.py
"""

from kadcrawl.system.printable import printable


class KadcrawlError(Exception):
    """Root of everything kadcrawl raises on purpose; its text is one sentence a person can act on."""


class ConfigError(KadcrawlError, ValueError):
    """The caller asked for something that cannot be: an unknown key, a bad URL, an impossible limit."""


class StartError(KadcrawlError):
    """The peer cannot start here: port in use, directory locked or unwritable, bootstrap unreachable."""


class StorageError(KadcrawlError):
    """The disk under a running peer failed: full, or gone. What was acknowledged is safe; the peer ends."""


class DiskFullError(StorageError):
    """The disk under a running peer has no room left. With room again, the same directory can be used again."""


class RemoteError(KadcrawlError):
    """Another peer did not answer, or answered something it should not have."""

    def __init__(self, peer: object, why: str) -> None:
        """`why` may be the other's own words: whatever else they are, they steer no terminal."""
        why = printable(why)
        super().__init__(f"peer {peer}: {why}")
        self.peer = peer
        self.why = why
