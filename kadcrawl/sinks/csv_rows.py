"""Documents as CSV: a header, then a row for each line of the log, with the columns of `tables`.

An absent value is an empty field, and so is an empty text.

Tests: tests/sinks/test_sinks.py, tests/cli/test_command_export_output.py
"""

import csv
from collections.abc import Iterable, Sequence

from kadcrawl.sinks.batch import DocumentBatch
from kadcrawl.sinks.tables import TABLES, Value, row

TERMINATOR = "\r\n"
"""The end of a line for the writer. Before Python 3.13 it quotes only those ends of lines that are in its own."""


def csv_header(table: str) -> bytes:
    """Return the line with the names of the table's columns."""
    return _encoded([[column.name for column in TABLES[table]]])


def csv_rows(batch: DocumentBatch) -> tuple[bytes, Sequence[str]]:
    """Return the rows of a batch without a header, and the reasons for refused documents."""
    documents, refused = batch.keyed_documents()
    return _encoded(row(batch.table, key, document) for key, document in documents), refused


def csv_file(batch: DocumentBatch) -> tuple[bytes, Sequence[str]]:
    """Return the batch as the bytes of a CSV file, with the reasons for refused documents (`Encode`)."""
    rows, refused = csv_rows(batch)
    return csv_header(batch.table) + rows, refused


class _Lines(list[str]):
    """The lines that a writer makes, each with a newline."""

    def write(self, line: str) -> None:
        """Add a line of the writer, with its `TERMINATOR`."""
        self.append(f"{line.removesuffix(TERMINATOR)}\n")


def _encoded(rows: Iterable[Sequence[Value]]) -> bytes:
    lines = _Lines()
    csv.writer(lines, lineterminator=TERMINATOR).writerows(rows)
    return "".join(lines).encode()
