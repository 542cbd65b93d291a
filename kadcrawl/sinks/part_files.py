"""JSON lines, CSV and Parquet in part files: TABLE/SOURCE-FIRST-END.jsonl, the bytes FIRST to END of one log.

A part appears whole (destinations.py) and its name tells its contents, so the parts themselves are the offset of the
sink. A repeated part has the same name and overwrites the first. The JSON lines are those of the log, byte for byte.

Tests: tests/sinks/test_sinks.py
"""

import re
from collections.abc import Callable, Sequence

from kadcrawl.sinks.batch import BatchSize, DocumentBatch
from kadcrawl.sinks.destinations import Destination

SIZE = BatchSize(lines_max=20_000, bytes_max=8 * 1024 * 1024, wait_s=300.0)
"""Size of a part. A smaller part is written after `wait_s`, or when the peer ends."""

Encode = Callable[[DocumentBatch], tuple[bytes, Sequence[str]]]
"""A function from a batch to the contents of a file and the reasons for refused documents."""


class PartSink:
    """A `BlockingSink` that writes part files."""

    def __init__(self, destination: Destination, suffix: str, encode: Encode, size: BatchSize = SIZE) -> None:
        """`suffix` ends the names of the files, without the dot."""
        self._destination = destination
        self._suffix = suffix
        self._encode = encode
        self.size = size

    def open(self) -> None:
        """Do nothing, as no file stays open."""

    def offset(self, table: str, source: str) -> int:
        part = re.compile(rf"{source}-\d+-(\d+)\.{self._suffix}")
        ends = (int(found[1]) for name in self._destination.sizes(table) if (found := part.fullmatch(name)))
        return max(ends, default=0)

    def put(self, batch: DocumentBatch) -> Sequence[str]:
        data, refused = self._encode(batch)
        name = f"{batch.table}/{batch.source}-{batch.first:015}-{batch.end:015}.{self._suffix}"
        self._destination.write(name, lambda: (data,))
        return refused

    def close(self) -> None:
        """Do nothing, as no file stays open."""


def json_lines(batch: DocumentBatch) -> tuple[bytes, Sequence[str]]:
    """Return the lines as they are (`Encode`)."""
    return b"".join(batch.lines), ()
