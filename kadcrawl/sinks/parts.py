"""JSON lines and Parquet, in part files: TABLE/SOURCE-FIRST-END.jsonl or .parquet, the bytes FIRST to END of one log.

A part appears whole (`places`) and its name says what it holds, so the parts are the mark: what was delivered is what
is there. A repeat of a part has its name and overwrites it. The JSON lines are those of the log, byte for byte.

Tests: tests/sinks/test_sinks.py
"""

import re
from collections.abc import Callable, Sequence

from kadcrawl.sinks.batch import BatchSize, DocumentBatch
from kadcrawl.sinks.places import Place

SIZE = BatchSize(lines_max=20_000, bytes_max=8 * 1024 * 1024, wait_s=300.0)
"""A part is written when it has this much, or its first line has waited so long, or the peer ends."""

Encode = Callable[[DocumentBatch], tuple[bytes, Sequence[str]]]
"""A batch -> the file, and why which documents are not in it."""


class PartSink:
    """A `BlockingSink` of files."""

    def __init__(self, place: Place, suffix: str, encode: Encode, size: BatchSize = SIZE) -> None:
        """`suffix` of the files' names, without the dot."""
        self._place = place
        self._suffix = suffix
        self._encode = encode
        self.size = size

    def open(self) -> None:
        """Nothing is held open."""

    def offset(self, table: str, source: str) -> int:
        part = re.compile(rf"{source}-\d+-(\d+)\.{self._suffix}")
        ends = (int(found[1]) for name in self._place.sizes(table) if (found := part.fullmatch(name)))
        return max(ends, default=0)

    def put(self, batch: DocumentBatch) -> Sequence[str]:
        data, refused = self._encode(batch)
        name = f"{batch.table}/{batch.source}-{batch.first:015}-{batch.end:015}.{self._suffix}"
        self._place.write(name, lambda: (data,))
        return refused

    def close(self) -> None:
        """Nothing is held open."""


def json_lines(batch: DocumentBatch) -> tuple[bytes, Sequence[str]]:
    """Return the lines as they are: an `Encode`."""
    return b"".join(batch.lines), ()
