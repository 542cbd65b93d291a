"""The [[sites]] tables of a job file: rules for single sites, by the names of the job's keys.

`job_file` reads all other keys, and adds the file and the line to an error.
"""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kadcrawl.errors import ConfigError
from kadcrawl.settings.durations import shown
from kadcrawl.settings.near_names import near_names
from kadcrawl.settings.request_headers import normal_header
from kadcrawl.settings.site_login import TAKES, from_table
from kadcrawl.settings.site_rules import NOTHING, Cookies, Robots, SiteRule, normal_match
from kadcrawl.settings.trust import read_authorities, shown as authorities_shown
from kadcrawl.settings.units import bytes_of, seconds_of
from kadcrawl.urls import seed


class SiteKey(NamedTuple):
    """The meaning of a key of a [[sites]] table."""

    field: str
    """Name of the field of `SiteRule`."""
    type: Any
    takes: str
    """Description of a valid value, for the error text."""


SITE_KEYS = {
    "match": SiteKey("match", str | tuple[str, ...], "a host in quotes, or a list of hosts"),
    "off": SiteKey("off", bool, "true or false"),
    "delay": SiteKey("delay_s", float | str, 'a number of seconds, or a length of time such as "2 min"'),
    "connections": SiteKey("connections", int, "a whole number of requests"),
    "max-site-pages": SiteKey("site_pages_max", int, "a whole number of URLs"),
    "recrawl-after": SiteKey("recrawl_after_s", float | str, '"never", or a length of time, such as "12h" or "7d"'),
    "retries": SiteKey("retries", int, "a whole number"),
    "max-body": SiteKey("body_bytes_max", int | str, 'a number of bytes, or a size such as "10MB"'),
    "timeout": SiteKey("fetch_timeout_s", float | str, 'a length of time, such as "30s", or a number of seconds'),
    "headers": SiteKey("headers", tuple[str, ...], "a list of headers, such as ['Accept-Language: de']"),
    "user-agent": SiteKey("user_agent", str, "a text in quotes"),
    "auth": SiteKey("auth", str, 'a text such as "basic:NAME", with the name of a secret'),
    "http-secrets": SiteKey("http_secrets", bool, "true or false"),
    "ca-file": SiteKey("ca_pem", str, "a PEM file with certificates, in quotes"),
    "client-certificate": SiteKey("client_certificate", str, "the name of a secret, in quotes"),
    "verify": SiteKey("verify", bool, "false"),
    "proxies": SiteKey("proxies", str, "the name of a pool, or none, in quotes"),
    "cookies": SiteKey("cookies", Cookies, "keep or off, in quotes"),
    "login": SiteKey("login", dict[str, Any], TAKES),
    "robots": SiteKey("robots", Robots, "obey or ignore, in quotes"),
    "sitemaps": SiteKey("sitemaps", bool | str | tuple[str, ...], "true, false, a URL in quotes, or a list of URLs"),
}
"""The keys of a [[sites]] table, in the order of the reference."""


def sites(value: object) -> tuple[SiteRule, ...]:
    """Return the rules of the [[sites]] tables. Raises ConfigError, naming the table by its number and match."""
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise ConfigError("sites must be tables, each begun by [[sites]] in double brackets")
    rules = []
    for number, table in enumerate(value, 1):
        try:
            rules.append(_rule(table))
        except ConfigError as error:
            match = f" (match {table['match']!r:.60})" if isinstance(table.get("match"), str) else ""
            raise ConfigError(f"[[sites]] number {number}{match}: {_in_keys(str(error))}") from None
    return tuple(rules)


def keys_of(rule: SiteRule) -> dict[str, Any]:
    """Return the keys that a table needs for this rule, as it may be shown."""
    values = {key: getattr(rule, field) for key, (field, _, _) in SITE_KEYS.items()}
    if rule.sitemap_urls:
        values["sitemaps"] = rule.sitemap_urls
    if not rule.off:
        del values["off"]
    if rule.login is not None:
        values["login"] = rule.login.as_table()
    values["ca-file"] = authorities_shown(rule.ca_pem)
    if rule.recrawl_after_s is not None:
        values["recrawl-after"] = shown(rule.recrawl_after_s) if rule.recrawl_after_s else "never"
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items() if value not in NOTHING
    }


def _rule(table: dict[str, Any]) -> SiteRule:
    values: dict[str, Any] = {"match": ()}
    for key, value in table.items():
        if key not in SITE_KEYS:
            near = near_names(key.lower(), SITE_KEYS)
            meant = f"did you mean {near[0]}?" if near else f"it has {', '.join(SITE_KEYS)}"
            raise ConfigError(f"there is no key {key!r:.60}; {meant}")
        values |= _fields(key, value)
    return SiteRule(**values)


def _fields(key: str, value: object) -> dict[str, Any]:
    """Return the fields of a rule for one key of its table."""
    field, kind, takes = SITE_KEYS[key]
    try:
        typed = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise ConfigError(f"{key} must be {takes}") from None
    if key == "match":
        hosts = (typed,) if isinstance(typed, str) else typed
        return {"match": tuple(dict.fromkeys(map(normal_match, hosts)))}
    if isinstance(typed, str) and key in ("delay", "recrawl-after", "max-body", "timeout"):
        return {field: _number(key, typed, takes)}
    if key == "login":
        return {field: from_table(typed)}
    if key == "ca-file":
        return {field: read_authorities(Path(typed))}
    if key == "headers":
        return {field: tuple(map(normal_header, typed))}
    if key == "sitemaps" and not isinstance(typed, bool):
        urls = (typed,) if isinstance(typed, str) else typed
        return {"sitemap_urls": tuple(dict.fromkeys(map(seed, urls)))}
    return {field: typed}


def _number(key: str, text: str, takes: str) -> float:
    """Return the seconds or bytes of a text."""
    if key == "recrawl-after" and text.strip().lower() == "never":
        return 0.0
    try:
        return bytes_of(text) if key == "max-body" else seconds_of(text)
    except ValueError:
        raise ConfigError(f"{key} must be {takes}, not {text!r:.60}") from None


def _in_keys(sentence: str) -> str:
    for key, (field, _, _) in SITE_KEYS.items():
        sentence = sentence.replace(field, key)
    return sentence
