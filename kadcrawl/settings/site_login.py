"""The login of a crawl at a site: the URL of a form, its plain fields, and the secrets of each machine in it.

With a hook the URL is that of the page with the form, and a function of each machine makes the request of this page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require
from kadcrawl.settings.page_rules import check_hook
from kadcrawl.settings.secrets import check_name
from kadcrawl.settings.value_types import check_types
from kadcrawl.urls import is_canonical, seed

FIELDS_MAX = 30
"""Limit on the fields of a form."""
FIELD_CHARS_MAX = 1_000
"""Limit on the characters of a field's name and of its value."""
TAKES = (
    "a table, as in { url = 'https://example.org/login', fields = { user = 'me' }, secrets = { password = 'wiki' } }"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLogin:
    """A form that is sent to a site before its first page. Raises ConfigError for a value out of its limits."""

    url: str
    """Canonical URL to which the form is sent, or with a hook that of the page that the hook reads."""
    fields: tuple[tuple[str, str], ...] = ()
    """Names and values of fields that are no secrets."""
    secrets: tuple[tuple[str, str], ...] = ()
    """Names of fields, and for each the name of the secret that is its value."""
    hook: str = ""
    """Function that makes the request, as ``module:function``, or empty for the form alone."""

    def __post_init__(self) -> None:
        check_types(self)
        require(is_canonical(self.url), "the url of login must be canonical, as urls.seed makes it")
        check_hook(self.hook)
        has_proof = bool(self.secrets or self.hook)
        require(has_proof, "login needs a secret, such as secrets = { password = 'wiki-password' }, or a hook")
        every = [*self.fields, *self.secrets]
        require(len(every) <= FIELDS_MAX, f"login has at most {FIELDS_MAX} fields")
        require(len({name for name, _ in every}) == len(every), "a field of login is given twice")
        for name, value in every:
            require(0 < len(name) <= FIELD_CHARS_MAX, f"a field of login has 1 to {FIELD_CHARS_MAX} characters")
            require(len(value) <= FIELD_CHARS_MAX, f"a value of login has at most {FIELD_CHARS_MAX} characters")
        for _, secret in self.secrets:
            check_name(secret)

    def body(self, secrets: Mapping[str, str]) -> bytes:
        """Return the form as it is sent, which must not be shown."""
        fields = [*self.fields, *((name, secrets[secret]) for name, secret in self.secrets)]
        return urlencode(fields).encode("ascii")

    def values(self, secrets: Mapping[str, str]) -> dict[str, str]:
        """Return the secrets of the form by field, which must not be shown."""
        return {name: secrets[secret] for name, secret in self.secrets}

    def as_table(self) -> dict[str, Any]:
        """Return the table that makes this form. It has the names of secrets, not their values."""
        form = {"url": self.url, "fields": dict(self.fields), "secrets": dict(self.secrets)}
        return form | ({"hook": self.hook} if self.hook else {})


def from_table(value: object) -> SiteLogin:
    """Return the form of a `login` table in a job file. Raises ConfigError for any other value."""
    if not isinstance(value, dict) or not isinstance(value.get("url"), str):
        raise ConfigError(f"login must be {TAKES}")
    if strange := sorted(value.keys() - {"url", "fields", "secrets", "hook"}):
        raise ConfigError(f"login has no key {strange[0]!r:.60}; it has url, fields, secrets and hook")
    hook = value.get("hook", "")
    if not isinstance(hook, str):
        raise ConfigError("hook of login must be a text, as in hook = 'logins:wiki'")
    return SiteLogin(
        url=seed(value["url"]), fields=_pairs("fields", value), secrets=_pairs("secrets", value), hook=hook
    )


def _pairs(key: str, table: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    pairs = table.get(key, {})
    if not isinstance(pairs, dict) or not all(isinstance(text, str) for text in pairs.values()):
        raise ConfigError(f"{key} of login must be a table of texts, as in {key} = {{ name = 'value' }}")
    return tuple(pairs.items())
