"""The results of directories as one stream of lines, for `kadcrawl export --to -` and `--to csv:-`.

Tests: tests/cli/test_command_export_output.py
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from kadcrawl.sinks.batch import LOGS, DocumentBatch
from kadcrawl.sinks.csv_rows import csv_header, csv_rows
from kadcrawl.store.log_parts import log_lines


class LineExport:
    """The lines of one table, of the peers with some directories."""

    def __init__(self, peers: Iterable[Path], table: str, kind: str) -> None:
        """`table` is a key of `LOGS`, and `kind` a value of `sink_names.STANDARD_OUTPUT`."""
        self._peers = peers
        self._table = table
        self._kind = kind
        self.refused = 0
        """Number of lines that are left out, as they are no documents."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines. Raises OSError."""
        if self._kind == "csv":
            yield csv_header(self._table)
        for peer in self._peers:
            for line in log_lines(peer / LOGS[self._table]):
                if line.endswith(b"\n"):  # Else its writer is in the middle of it, or was killed there.
                    yield self._encoded(line)

    def _encoded(self, line: bytes) -> bytes:
        if self._kind != "csv":
            return line
        rows, refused = csv_rows(DocumentBatch(self._table, "", 0, len(line), (line,)))
        self.refused += len(refused)
        return rows
