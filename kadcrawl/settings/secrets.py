"""The secrets of one machine: passwords and tokens that a job calls by name.

A job has only the names, so no secret travels, stands in a journal, or is seen by a member without it. Each machine of
a swarm reads the secrets itself: from a file that only its owner may read, and from environment variables. Neither is
an argument of a command, which other people on the machine could see.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require

SECRETS_MAX = 1_000
"""Limit on the secrets of a machine."""
SECRET_CHARS_MAX = 4_000
"""Limit on the characters of one secret. Tokens have up to two thousand."""
SECRETS_BYTES_MAX = 1024 * 1024
"""Limit on the size of a file of secrets. A longer file is cut off, and then no TOML."""
VARIABLE_PREFIX = "KADCRAWL_SECRET_"
"""Start of the environment variables that hold a secret each: the rest is its name, in upper case, with _ for -."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")


class Secrets(Mapping[str, str]):
    """Secrets by name. Neither its text nor its representation shows a value."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """Raises ConfigError, without a value in its text, for a bad name or value."""
        self._values = dict(values or {})
        require(len(self._values) <= SECRETS_MAX, f"a machine has at most {SECRETS_MAX} secrets")
        for name, value in self._values.items():
            check_name(name)
            require(0 < len(value) <= SECRET_CHARS_MAX, f"secret {name} must have 1 to {SECRET_CHARS_MAX} characters")
            require(value.isprintable(), f"secret {name} must be printable, without line breaks")

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Secrets {', '.join(self._values)}>"


def check_name(name: str) -> None:
    """Raise ConfigError unless this can be the name of a secret."""
    require(
        _NAME.fullmatch(name) is not None,
        f"the name of a secret has 1 to 50 small letters, digits and hyphens, such as wiki-login, not {name!r:.60}",
    )


def from_toml(text: str, source: str) -> dict[str, str]:
    """Return the secrets of a TOML text with a line ``name = "secret"`` for each.

    Raises ConfigError, whose text repeats nothing of a line.
    """
    import tomllib  # Not at the top: most crawls have no secrets.

    try:
        values: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        raise ConfigError(f'{source} is no file of secrets: a line for each, such as wiki-login = "secret"') from None
    for name, value in values.items():
        check_name(name)
        require(isinstance(value, str), f'{source}: secret {name} must be a text in quotes, as in {name} = "secret"')
    return values


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets in environment variables."""
    return {
        variable.removeprefix(VARIABLE_PREFIX).lower().replace("_", "-"): value
        for variable, value in environment.items()
        if variable.startswith(VARIABLE_PREFIX) and value
    }
