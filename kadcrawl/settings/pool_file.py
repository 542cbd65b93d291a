"""The [[pools]] tables of a job file: proxies with a name. No error text shows a proxy, which may have a password.

`job_file` reads all other keys, and adds the file and the line to an error.

Tests: tests/settings/test_pool_file.py
"""

import re
from pathlib import Path
from typing import Any

from kadcrawl.errors import ConfigError
from kadcrawl.settings.proxy_list import ProxyPool, read_file
from kadcrawl.urls import canonical

POOL_KEYS = {
    "name": "a name in quotes, of small letters, digits and hyphens",
    "proxies": "a file with a proxy a line, or the URL of such a list or of a web page, in quotes",
}
"""The keys of a [[pools]] table, and a description of their values."""


def pools(value: object) -> tuple[ProxyPool, ...]:
    """Return the pools of the [[pools]] tables. Raises ConfigError, naming the table by its number."""
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise ConfigError("pools must be tables, each begun by [[pools]] in double brackets")
    made = []
    for number, table in enumerate(value, 1):
        try:
            made.append(_pool(table))
        except ConfigError as error:
            raise ConfigError(f"[[pools]] number {number}: {error}") from None
    return tuple(made)


def list_of(value: object, key: str, takes: str) -> tuple[tuple[str, ...], str | None]:
    """Return the proxies of a file, or the URL of a list. Raises ConfigError, without the value in its text."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{key} must be {takes}")
    if re.match(r"(?i)https?://", value):
        if (url := canonical(value)) is None:
            raise ConfigError(f"{key} must be {takes}")
        return (), url
    if re.match(r"[A-Za-z0-9]+://", value):
        raise ConfigError(f"{key} must be {takes}; write a single proxy into a file")
    return read_file(Path(value)), None


def _pool(table: dict[str, Any]) -> ProxyPool:
    if strange := sorted(table.keys() - POOL_KEYS.keys()):
        raise ConfigError(f"there is no key {strange[0]!r:.60}; a pool has name and proxies")
    if not isinstance(name := table.get("name"), str):
        raise ConfigError(f"name must be {POOL_KEYS['name']}")
    proxies, proxies_from = list_of(table.get("proxies"), "proxies", POOL_KEYS["proxies"])
    return ProxyPool(name=name, proxies=proxies, proxies_from=proxies_from)
