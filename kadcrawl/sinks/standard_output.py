"""The results of directories as one stream of lines, for `kadcrawl export --to -` and `--to csv:-`.

Tests: tests/cli/test_command_export_output.py
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from kadcrawl.errors import ConfigError
from kadcrawl.sinks.batch import LOGS, DocumentBatch
from kadcrawl.sinks.csv_rows import csv_header, csv_rows
from kadcrawl.store.log_parts import LINE_READ_MAX, LogPart, cut_error, guarded, log_pieces


class LineExport:
    """The lines of one table, of the peers with some directories."""

    def __init__(self, peers: Iterable[Path], table: str, kind: str) -> None:
        """`table` is a key of `LOGS`, and `kind` a value of `sink_names.STANDARD_OUTPUT`."""
        self._peers = peers
        self._table = table
        self._kind = kind
        self.refused = 0
        """Number of lines that are left out, as they are no documents."""

        self.parts_elsewhere = 0
        """Number of closed parts that are not here."""
        self.lines_elsewhere = 0
        """Number of lines in these parts, as far as their indexes say."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines. Raises ConfigError if a file cannot be read to its end."""
        if self._kind == "csv":
            yield csv_header(self._table)
        for peer in self._peers:
            try:
                for part, file in log_pieces(peer / LOGS[self._table]):
                    if file is None:
                        self.parts_elsewhere += 1
                        self.lines_elsewhere += 0 if part is None else part.lines or 0
                    else:
                        yield from map(self._encoded, _whole_lines(part, file))
            except OSError as error:
                raise ConfigError(f"{error}. The lines before it were written") from error

    def _encoded(self, line: bytes) -> bytes:
        if self._kind != "csv":
            return line
        rows, refused = csv_rows(DocumentBatch(self._table, "", 0, len(line), (line,)))
        self.refused += len(refused)
        return rows


def _whole_lines(part: LogPart | None, opened: IO[bytes]) -> Iterator[bytes]:
    """Yield the whole lines of a file of a log. Raises OSError, also if a closed part is cut."""
    file, there = Path(opened.name), 0
    while line := guarded(file, lambda: opened.readline(LINE_READ_MAX)):
        there += len(line)
        if line.endswith(b"\n"):  # Else its writer is in the middle of it, or was killed there.
            yield line
    if part is not None and there < part.bytes:
        raise cut_error(file, there, part.bytes)
