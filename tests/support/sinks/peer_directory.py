"""A peer's directory that only the test writes."""

import json
from pathlib import Path
from typing import Any

Documents = dict[str, dict[str, dict[str, Any]]]
"""Table -> key -> document."""


class Directory:
    """A peer's directory, written by nobody but the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.expected: Documents = {"pages": {}, "records": {}}
        self._number = 0
        path.mkdir()

    def write(self, pages: int, records: int = 0) -> None:
        """Add so many lines to each log."""
        for _ in range(pages):
            self._number += 1
            key = f"{self._number:040x}"
            self.add("pages", {"key": key, "url": f"https://example.org/{self._number}", "status": 200, "links": 3})
        for number in range(records):
            record = {"title": "Ä", "prices": [1, 2.5], "page": {"n": self._number}}
            key = f"{self._number:040x}:{number}"
            self.add("records", {"key": key, "url": "https://example.org/", "rule": "r", "record": record})

    def add(self, table: str, document: dict[str, Any]) -> None:
        self.expected[table][document["key"]] = document
        self.append(table, json.dumps(document).encode() + b"\n")

    def append(self, table: str, data: bytes) -> None:
        with (self.path / f"{table}.jsonl").open("ab") as log:
            log.write(data)
