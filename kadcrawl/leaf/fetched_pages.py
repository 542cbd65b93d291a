"""`FetchedPages`: the pages that a leaf has fetched and no lender knows to be done, in a job that keeps fingerprints.

A fingerprint cannot be taken back, so a leaf keeps none. It remembers the keys, in memory and the latest only, until a
lender acknowledges them. A leaf that was started again has forgotten them, and their owners have them fetched again. A
decision.
"""

from kadcrawl.keys import Key

FETCHED_MAX = 10_000
"""Pages that are remembered. Only the pages of lenders that are gone are not acknowledged soon."""


class FetchedPages:
    """The keys of fetched pages."""

    def __init__(self) -> None:
        self._failed: dict[Key, str] = {}
        """Key -> the reason of a failure, or empty, the oldest first."""

    def __len__(self) -> int:
        return len(self._failed)

    def note(self, key: Key, failed: str) -> bool:
        """Remember a page, and forget the oldest page beyond `FETCHED_MAX`. Return False if the page was known."""
        is_new = key not in self._failed
        self._failed[key] = failed
        if len(self._failed) > FETCHED_MAX:
            del self._failed[next(iter(self._failed))]
        return is_new

    def get(self, key: Key) -> str | None:
        """Return the reason for which a remembered page failed, empty without a failure, or None."""
        return self._failed.get(key)

    def forget(self, key: Key) -> None:
        """Forget a page that its lender knows to be done."""
        self._failed.pop(key, None)
