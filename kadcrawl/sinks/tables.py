"""Documents as rows, for sinks with columns: the columns of each table, and `more` for all other fields.

Nothing of a document is lost: a field without a column, or with a value of another type, goes into `more` as JSON.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from kadcrawl.sinks.batch import Document

Value = str | int | None
INTEGER_MAX = 2**63 - 1
"""Largest integer of a column, by absolute value."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: Literal["text", "integer", "json"]
    """Type of the values. `json` is any value, as JSON text."""


def _columns(text: str, integer: str = "", json: str = "") -> tuple[Column, ...]:
    return (
        *(Column(name, "text") for name in text.split()),
        *(Column(name, "integer") for name in integer.split()),
        *(Column(name, "json") for name in json.split()),
    )


TABLES = {
    "pages": _columns(
        "key url mime digest fetched_at peer warc unchanged simhash failed detail canonical twin role record_error "
        "location via answer_mime answer_digest answer_fetched_at answer_peer answer_warc",
        "status bytes depth links ms offset visit records tried_by noindex answer_status answer_bytes answer_offset",
        "more",
    ),
    "records": _columns("key url fetched_at peer rule", json="record more"),
}
"""The columns of each table: `key` comes first and `more` last."""


def row(table: str, key: str, document: Document) -> Sequence[Value]:
    """Return the document's values in the order of the table's columns."""
    rest = {name: value for name, value in document.items() if name != "key"}
    values: list[Value] = [key]
    for column in TABLES[table][1:-1]:
        fits, value = _value(column, rest.get(column.name))
        values.append(value)
        if fits:
            rest.pop(column.name, None)
    values.append(_json(rest) if rest else None)
    return values


def _value(column: Column, value: object) -> tuple[bool, Value]:
    """Return (fits, value): whether the value fits the column, and the value of the row."""
    if value is None:
        return True, None
    if column.kind == "json":
        return True, _json(value)
    if column.kind == "text" and isinstance(value, str):
        return True, value
    if column.kind == "integer" and isinstance(value, int) and abs(value) <= INTEGER_MAX:
        return True, int(value)
    return False, None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
