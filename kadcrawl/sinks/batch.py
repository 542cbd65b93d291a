"""Lines of a log on their way to a sink, and the documents in them.

A document's identity is its key: a page's is the key of its URL (keys.py) in hex, a record's that and its number.
Lines written before page lines had keys are known by their URL. A line that is no such document is refused, which is
said in the peer's log; the line itself stays in the file.

Tests: tests/sinks/test_delivery.py, tests/sinks/test_log_reader.py
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

Document = dict[str, Any]

LOGS = {"pages": "pages.jsonl", "records": "records.jsonl"}
"""Table -> the file in the peer's directory whose lines are its rows."""


class BatchSize(NamedTuple):
    """How much a sink takes at once."""

    lines_max: int
    bytes_max: int
    """Of lines; the last one may exceed it."""
    wait_s: float
    """Seconds a smaller batch waits for more."""


@dataclass(frozen=True, slots=True)
class DocumentBatch:
    """Whole lines of one log, in order."""

    table: str
    source: str
    """Which log: 16 hex digits that no other log has."""
    first: int
    """Byte in the log at which the first line begins."""
    end: int
    """Byte behind the last line: the mark once they are delivered."""
    lines: Sequence[bytes]
    """With their newlines; empty for one too long to be read."""

    def documents(self) -> tuple[dict[str, Document], list[str]]:
        """Return the documents by key, the last of each key, and of each line that is none why not."""
        found: dict[str, Document] = {}
        refused: list[str] = []
        for number, line in enumerate(self.lines):
            try:
                document = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                refused.append(f"{self.place_of(number)}: no JSON ({error})")
                continue
            key = _key(document)
            if key is None:
                refused.append(f"{self.place_of(number)}: a document without a key")
            else:
                found[key] = document
        return found, refused

    def place_of(self, number: int) -> str:
        """Return, for a person, where a line of the batch is."""
        return f"{LOGS[self.table]}, line {number + 1} after byte {self.first}"


def _key(document: object) -> str | None:
    if not isinstance(document, dict):
        return None
    key = document.get("key", document.get("url"))
    return key if isinstance(key, str) and key else None
