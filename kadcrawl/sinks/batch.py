"""A batch of lines from a log on their way to a sink, and the documents in them.

The key is the identity of a document: a page has the key of its URL (keys.py) in hex, a record has that key and its
number. Lines from before page lines had keys are identified by their URL. A line that is no such document is refused.
The peer's log says so, and the line stays in the file.

Tests: tests/sinks/test_delivery.py, tests/sinks/test_log_reader.py
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

Document = dict[str, Any]

LOGS = {"pages": "pages.jsonl", "records": "records.jsonl"}
"""The file in the peer's directory with the rows of each table, by the table's name."""


class BatchSize(NamedTuple):
    """The size of the batches that a sink takes."""

    lines_max: int
    """Limit on the lines of a batch."""
    bytes_max: int
    """Limit on the bytes of a batch. The last line may exceed it."""
    wait_s: float
    """Seconds for which a smaller batch waits for more lines."""


@dataclass(frozen=True, slots=True)
class DocumentBatch:
    """Whole lines of one log, in order."""

    table: str
    source: str
    """Identity of the log: 16 hex digits that no other log has."""
    first: int
    """Offset in the log at which the first line begins, in bytes."""
    end: int
    """Offset after the last line: the sink's offset once the batch is delivered."""
    lines: Sequence[bytes]
    """The lines with their newlines. A line that is too long to be read is empty."""

    def documents(self) -> tuple[dict[str, Document], list[str]]:
        """Return the documents by key, the last of each key, and the reasons for refused lines."""
        found, refused = self.keyed_documents()
        return dict(found), refused

    def keyed_documents(self) -> tuple[list[tuple[str, Document]], list[str]]:
        """Return the key and the document of each line, in order, and the reasons for refused lines."""
        found: list[tuple[str, Document]] = []
        refused: list[str] = []
        for number, line in enumerate(self.lines):
            try:
                document = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                refused.append(f"{self.position_of(number)}: no JSON ({error})")
                continue
            key = _key(document)
            if key is None:
                refused.append(f"{self.position_of(number)}: a document without a key")
            else:
                found.append((key, document))
        return found, refused

    def position_of(self, number: int) -> str:
        """Return the position of a line of the batch, for a person."""
        return f"{LOGS[self.table]}, line {number + 1} after byte {self.first}"


def _key(document: object) -> str | None:
    if not isinstance(document, dict):
        return None
    key = document.get("key", document.get("url"))
    return key if isinstance(key, str) and key else None
