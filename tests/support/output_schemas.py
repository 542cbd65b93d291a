"""The output of a crawl compared with its documented schemas (docs/reference/*.schema.json)."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

REFERENCE = Path(__file__).parents[2] / "docs/reference"
LINES_MAX = 100
"""Lines of one file that are compared, as each takes a fifth of a millisecond."""


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the validator of `pages`, `records`, `summary` or `status`."""
    schema = json.loads((REFERENCE / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def departures(name: str, value: Any) -> list[str]:
    """Return the places in which a value departs from a schema."""
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(value)]


def lines_of(data: Path, name: str) -> Iterator[Any]:
    """Yield the complete lines of every file of this name below a directory, the first of each file."""
    for log in sorted(data.rglob(f"{name}.jsonl")):
        with log.open() as lines:
            for line in islice(lines, LINES_MAX):
                if line.endswith("\n"):
                    yield json.loads(line)


def departing_lines(data: Path) -> list[str]:
    """Return the departures of all page lines and records below a directory."""
    return [
        f"{name}: {why}"
        for name in ("pages", "records")
        for line in lines_of(data, name)
        for why in departures(name, line)
    ]
