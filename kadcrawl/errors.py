"""The tree of errors: each kind of fault has its own treatment.

There are four kinds of failure. A mistake of the caller is a ``ValueError`` that says what to do. A fault of the remote
peer is a `RemoteError`, which is counted and then ignored. Trouble of the network or the machine is retried by policy.
A bug of kadcrawl is an ``assert`` with a sentence.

Tests: tests/link/test_link.py, tests/store/test_store.py
"""

from kadcrawl.system.printable import printable


class KadcrawlError(Exception):
    """The root of all errors that kadcrawl raises on purpose. The text tells a person what to do."""

    @property
    def for_people(self) -> str:
        """The text without what is of use in a log only."""
        return str(self)


class ConfigError(KadcrawlError, ValueError):
    """A mistake of the caller: an unknown key, a bad URL, an impossible limit."""


class StartError(KadcrawlError):
    """The peer cannot start here: port in use, directory locked or unwritable, bootstrap unreachable."""


class UnansweredError(StartError):
    """No bootstrap peer answers so far. The same peer may be asked to join again."""


class StorageError(KadcrawlError):
    """The disk of a running peer failed. All acknowledged records are safe, and the peer ends."""


class DiskFullError(StorageError):
    """The disk of a running peer is full. The directory can be used again once there is room."""


class RemoteError(KadcrawlError):
    """Another peer did not answer, or broke the protocol."""

    def __init__(self, peer: object, why: str, question: str = "") -> None:
        """`why` may be a text of the other peer. Its control characters are replaced, so it cannot steer a terminal.

        `question` names the message that was sent. Only logs show it.
        """
        why = printable(why)
        super().__init__(f"peer {peer}: {why}" + (f" [{question}]" if question else ""))
        self.peer = peer
        self.why = why

    @property
    def for_people(self) -> str:
        """The text without the name of the message."""
        return f"peer {self.peer}: {self.why}"
