"""Documents as CSV: a header, then a row for each line of the log, with the columns of `tables`.

An absent value is an empty field, and so is an empty text.

Tests: tests/sinks/test_sinks.py, tests/cli/test_command_export_output.py
"""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from kadcrawl.sinks.batch import DocumentBatch
from kadcrawl.sinks.tables import TABLES, Value, row


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


def _encoded(rows: Iterable[Sequence[Value]]) -> bytes:
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
