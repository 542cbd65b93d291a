"""The records that peers wrote."""

import json
from pathlib import Path
from typing import Any


def records(data: Path) -> list[dict[str, Any]]:
    """Return every line of every record log under a directory, log by log."""
    return [json.loads(line) for log in sorted(data.rglob("records.jsonl")) for line in log.read_text().splitlines()]
