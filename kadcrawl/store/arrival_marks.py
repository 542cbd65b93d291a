"""Marks of the times at which rows of the frontier arrived, by which the age of a pending URL is known.

Rows are numbered in the order of their arrival. A mark is a number and the second at which that was the last number.
Marks become sparse with their age, so that a crawl of months keeps some hundred.

Tests: tests/store/test_arrival_marks.py
"""

from bisect import bisect_right

import msgspec

from kadcrawl.store.meta_table import MetaTable

MARK_INTERVAL_S = 5.0
"""Seconds between two marks, and so about the error of a young URL's age."""
MARKS_MAX = 400
"""Marks that are kept. Beyond that, each second mark of the older half goes."""
_MARKS = msgspec.msgpack.Decoder(list[tuple[float, int]])


class ArrivalMarks:
    """The arrival marks of one peer."""

    def __init__(self, meta: MetaTable) -> None:
        """Read the marks of earlier runs. Raises StorageError if they are damaged."""
        self._meta = meta
        self._marks = meta.read("arrivals", _MARKS.decode) or []
        """(second, number of the last row then), in order."""

    def note(self, now: float, number: int) -> None:
        """Journal that this is the number of the last row now, unless the last mark is young or says so already."""
        while self._marks and self._marks[-1][0] > now:
            self._marks.pop()  # The clock of an earlier run was ahead.
        if self._marks and (now < self._marks[-1][0] + MARK_INTERVAL_S or number <= self._marks[-1][1]):
            return
        self._marks.append((now, number))
        if len(self._marks) > MARKS_MAX:
            half = MARKS_MAX // 2
            self._marks = [*self._marks[:half:2], *self._marks[half:]]
        self._meta.set("arrivals", msgspec.msgpack.encode(self._marks))

    def older_than(self, second: float) -> int:
        """Return the number of the last row that arrived before a second, as far as the marks say, or 0."""
        place = bisect_right(self._marks, second, key=lambda mark: mark[0])
        return self._marks[place - 1][1] if place else 0
