"""The tables of a job file that give roles to pages and extract records: [[roles]] and [[records]].

`job_file` reads all other keys, and adds the file and the line to an error.

Tests: tests/settings/test_page_rules.py, tests/settings/test_job_file.py
"""

from collections.abc import Callable, Mapping
from typing import Any

from kadcrawl.errors import ConfigError
from kadcrawl.settings.near_names import near_names
from kadcrawl.settings.page_rules import Field, RecordRule, RoleRule

ROLE_KEYS = {"pattern": str, "role": str, "follow": bool}
RECORD_KEYS = {"pattern": str, "name": str, "fields": dict, "each": str, "hook": str}
_TAKES = {str: "a text in quotes", bool: "true or false", dict: "a table, as in { title = 'css:h1::text' }"}


def roles(value: object) -> tuple[RoleRule, ...]:
    """Return the rules of the [[roles]] tables. Raises ConfigError, naming the table by its number."""
    return _rules("roles", value, ROLE_KEYS, lambda table: RoleRule(**table))


def records(value: object) -> tuple[RecordRule, ...]:
    """Return the rules of the [[records]] tables. Raises ConfigError, naming the table by its number."""
    return _rules("records", value, RECORD_KEYS, _record)


def _record(table: dict[str, Any]) -> RecordRule:
    fields = tuple(_field(name, selector) for name, selector in table.pop("fields", {}).items())
    return RecordRule(**table, fields=fields)


def _field(name: str, value: object) -> Field:
    match value:
        case str():
            return Field(name, value)
        case [str(selector)]:
            return Field(name, selector, every=True)
    raise ConfigError(
        f"fields.{name} must be a selector such as 'css:h1::text', for the first it finds, "
        "or ['css:h1::text'], for a list of all"
    )


def _rules(
    kind: str, value: object, keys: Mapping[str, type], make: Callable[[dict[str, Any]], Any]
) -> tuple[Any, ...]:
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise ConfigError(f"{kind} must be tables, each begun by [[{kind}]] in double brackets")
    made = []
    for number, table in enumerate(value, 1):
        try:
            made.append(make(_checked(table, keys)))
        except ConfigError as error:
            pattern = f" (pattern {table['pattern']!r:.60})" if isinstance(table.get("pattern"), str) else ""
            raise ConfigError(f"[[{kind}]] number {number}{pattern}: {error}") from None
    return tuple(made)


def _checked(table: dict[str, Any], keys: Mapping[str, type]) -> dict[str, Any]:
    for key, value in table.items():
        if key not in keys:
            near = near_names(key.lower(), keys)
            meant = f"did you mean {near[0]}?" if near else f"it has {', '.join(keys)}"
            raise ConfigError(f"there is no key {key!r:.60}; {meant}")
        if not isinstance(value, keys[key]):
            raise ConfigError(f"{key} must be {_TAKES[keys[key]]}")
    for key in ("pattern", "role"):
        if key in keys and key not in table:
            raise ConfigError(f"{key} is missing")
    return dict(table)
