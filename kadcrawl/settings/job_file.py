"""The job file, `kadcrawl.toml`: a `Job` that can be kept, shared and read before the crawl.

The file is flat. A key is an option of `kadcrawl crawl` without the leading dashes and has the same meaning, and
`seeds` are the URLs. So each setting has one name, and `kadcrawl crawl --help` explains the file too. Tables are only
for rules with several values that are no single option: [[roles]], [[records]] (rule_file.py), [[pools]]
(pool_file.py) and [[sites]] (site_file.py).

Every mistake is a ConfigError of one sentence with the file, the line if known, the key, and a valid value. The type of
a value is defined at the field of `Job`, and its range in the check of `Job`. This module only has the words for both.
`read` reads the disk. `parse` reads nothing but a list of proxies that the text names.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec

from kadcrawl.errors import ConfigError
from kadcrawl.settings import limit_file, pool_file, rule_file, site_file
from kadcrawl.settings.contact import checked_contact
from kadcrawl.settings.job import (
    Balance,
    Canonical,
    Filters,
    History,
    Job,
    Nofollow,
    PartitionSolver,
    ScopeKind,
    SessionIds,
    TwinLinks,
)
from kadcrawl.settings.limit_file import LIMITS, SaidLimits, joined
from kadcrawl.settings.near_names import near_names
from kadcrawl.settings.recrawl_checks import CalendarGrain
from kadcrawl.settings.request_headers import normal_header
from kadcrawl.settings.trust import read_authorities
from kadcrawl.settings.units import bytes_of, seconds_of
from kadcrawl.settings.unset import UNSET, fields_in_use, is_none
from kadcrawl.settings.useful import check_useful
from kadcrawl.urls import Partition, seed

JOB_FILE_BYTES_MAX = 4 * 1024 * 1024
"""Limit on the size of a job file. All seeds of a job have at most 1 MB."""
VALUE_CHARS_SHOWN_MAX = 60
"""Limit on the characters of a wrong value in an error text."""
LINES_TRIED_MAX = 10
"""Limit on the candidate lines for a key, as each costs another parse of the file."""


class Key(NamedTuple):
    """The meaning of a key of the file."""

    field: str
    """Name of the field of `Job`."""
    takes: str
    """Description of a valid value, for the error text."""


_DURATION = 'a length of time, such as "90s", "12h", "7 days", or a number of seconds'
DURATIONS = frozenset(
    {
        *("max-time", "delay", "delay-most", "update", "network-wait"),
        *("recrawl-after", "recrawl-least", "recrawl-most", "grain"),
    }
)
"""Keys whose value may be a text such as "7d"."""
SIZES = frozenset({"max-bytes"})
"""Keys whose value may be a text such as "10 MB"."""
TOGETHER = frozenset({"user-agent", "robots-token", "solver"})
"""Keys that are checked with the whole job, as they depend on other keys."""
_PATTERNS = "a list of regular expressions, such as ['/docs/', '\\.html$']"

KEYS = {
    "seeds": Key("seeds", 'a list of URLs, such as ["https://example.org/"]'),
    "scope": Key("scope", f"one of {', '.join(get_args(ScopeKind))}, in quotes"),
    "include": Key("include", _PATTERNS),
    "exclude": Key("exclude", _PATTERNS),
    "max-depth": Key("max_depth", "a whole number of links"),
    "max-pages": Key("max_pages", "a whole number of URLs"),
    "max-bytes": Key("max_bytes", 'a size, such as "500 MB", "10 GiB", or a number of bytes'),
    "max-time": Key("max_time_s", _DURATION),
    "max-site-pages": Key("site_pages_max", "a whole number of URLs"),
    "max-path-queries": Key("path_queries_max", "a whole number of URLs"),
    "max-path-segments": Key("path_segments_max", "a whole number of segments"),
    "max-path-repeats": Key("path_repeats_max", "a whole number of times"),
    "max-parameters": Key("query_parameters_max", "a whole number of parameters"),
    "session-ids": Key("session_ids", f"one of {', '.join(get_args(SessionIds))}, in quotes"),
    "strip-parameters": Key("strip_parameters", 'a list of parameters or sets, such as ["utm", "click-ids", "ref"]'),
    "sort-query": Key("sort_query", "true or false"),
    "sitemaps": Key("sitemaps", "true or false"),
    "canonical": Key("canonical", f"one of {', '.join(get_args(Canonical))}, in quotes"),
    "nofollow": Key("nofollow", f"one of {', '.join(get_args(Nofollow))}, in quotes"),
    "twins": Key("twins", f"one of {', '.join(get_args(TwinLinks))}, in quotes"),
    "delay": Key("delay_s", _DURATION),
    "delay-factor": Key("delay_factor", "a number"),
    "delay-most": Key("delay_most_s", _DURATION),
    "per-ip": Key("per_ip", "true or false"),
    "retries": Key("retries", "a whole number"),
    "refusals": Key("refusals_max", "a whole number"),
    "network-wait": Key("network_wait_s", _DURATION),
    "partition": Key("partition", f"one of {', '.join(get_args(Partition))}, in quotes"),
    "copies": Key("copies", "a whole number of peers"),
    "balance": Key("balance", f"one of {', '.join(get_args(Balance))}, in quotes"),
    "solver": Key("solver", f"one of {', '.join(get_args(PartitionSolver))}, in quotes"),
    "block": Key("block_urls", "a whole number of URLs"),
    "update": Key("update_s", _DURATION),
    "recrawl-after": Key("recrawl_after_s", _DURATION),
    "recrawl-adaptive": Key("recrawl_adaptive", "true or false"),
    "recrawl-least": Key("recrawl_least_s", _DURATION),
    "recrawl-most": Key("recrawl_most_s", _DURATION),
    "history": Key("history", f"one of {', '.join(get_args(History))}, in quotes"),
    "grain": Key("grain_s", _DURATION),
    "calendar-grain": Key("calendar_grain", f"one of {', '.join(get_args(CalendarGrain))}, in quotes"),
    "filters": Key("filters", f"one of {', '.join(get_args(Filters))}, in quotes"),
    "proxies": Key("proxies", "a file with a proxy a line, or the URL of such a list or of a web page, in quotes"),
    "proxy-judge": Key("proxy_judge", "a URL, in quotes"),
    "simhash": Key("simhash", "true or false"),
    "name": Key("name", "a text in quotes"),
    "headers": Key("headers", "a list of headers, such as ['Accept-Language: de']"),
    "user-agent": Key("user_agent", "a text in quotes"),
    "robots-token": Key("robots_token", "a text in quotes"),
    "ca-file": Key("ca_pem", "a PEM file with certificates, in quotes"),
    "contact": Key("contact", "a URL or an e-mail address, in quotes"),
}
"""The keys of a job file, in the order of `--help`."""

PROXIES = "proxies"
"""The key that stands for two fields (`proxy_fields`), whose values are not shown."""
SINKS = "sinks"
"""The key for settings of this machine alone: a list of --sink."""
RULE_READERS: dict[str, Callable[[object], tuple[Any, ...]]] = {
    "roles": rule_file.roles,
    "records": rule_file.records,
    "pools": pool_file.pools,
    "sites": site_file.sites,
}
"""The functions that read the tables, by the field of the job."""

_TYPES: dict[str, Any] = {entry.name: entry.type for entry in fields(Job)}

_HINTS = {
    "Invalid value": "a text stands in quotes",
    "Unescaped '\\' in a string": "in 'single quotes' a backslash is nothing special",
    "Cannot overwrite a value": "a key can be given once",
}
"""Hints for a person, by the error text of tomllib."""

_BARE = re.compile(r"[\w-]{1,60}")
"""Pattern of a key that needs no quotes in a sentence."""
_PLACE = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class JobFile:
    """The contents of a job file: a whole job, and the fields that the file sets."""

    path: Path
    job: Job
    said: tuple[str, ...]
    """Fields of the job that the file sets. Other fields have their defaults."""
    sinks: tuple[str, ...] = ()
    """Sinks of the machine that reads the file. The job has no sinks, as they may contain passwords."""
    limits: SaidLimits = field(default_factory=dict)
    """Limits that the file sets: those of the job, which the job has as well, and those of the machine."""

    @property
    def values(self) -> dict[str, Any]:
        """The values that the file sets, by the fields of the job."""
        return {field: getattr(self.job, field) for field in self.said}


def read(path: Path) -> JobFile:
    """Return the job in this file. Raises ConfigError if the file is unreadable or the job invalid."""
    try:
        with path.open("rb") as file:
            raw = file.read(JOB_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the job file {path}: {error.strerror}") from None
    if len(raw) > JOB_FILE_BYTES_MAX:
        raise ConfigError(f"{path} is too large for a job file: at most {JOB_FILE_BYTES_MAX // 1024**2} MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8, as TOML must be; save the file as UTF-8") from None
    return parse(text, path)


def parse(text: str, path: Path) -> JobFile:
    """Return the job that this text says. `path` is where it is from. Raises ConfigError if it is no good job."""
    values: dict[str, Any] = {}
    sinks: tuple[str, ...] = ()
    limits: SaidLimits = {}
    for key, value in _toml(text, path).items():
        try:
            if key == SINKS:
                sinks = _sinks(value)
                continue
            if key == PROXIES:
                values |= proxy_fields(value)
                continue
            if key == LIMITS:
                limits = limit_file.limits(value)
                continue
            if key in RULE_READERS:
                values[key] = () if is_none(value) else RULE_READERS[key](value)
                if key not in ("pools", "sites"):  # Those depend on other keys, and are checked with the whole job.
                    Job(**{key: values[key]})
                continue
            if key not in KEYS:
                raise ConfigError(_unknown(key, value))
            values[KEYS[key].field] = _checked(key, value)
        except ConfigError as error:
            line = _line_of(text, key)
            raise ConfigError(f"{path}{'' if line is None else f', line {line}'}: {error}") from None
    try:
        job = Job(**values, shared_limits=joined((), limits))
        check_useful(job, fields_in_use(values))
    except ConfigError as error:
        raise ConfigError(f"{path}: {in_keys(str(error))}") from None
    return JobFile(path, job, tuple(values), sinks, limits)


def _toml(text: str, path: Path) -> dict[str, Any]:
    import tomllib  # Not at the top: the command loads this file always, and most crawls have no job file.

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        what = str(error) if place is None else str(error)[: place.start()]
        line, column = (place["line"], place["column"]) if place is not None else (None, None)
        if line is None:
            whole = text.rstrip()
            line, column = str(whole.count("\n") + 1), str(len(whole) - whole.rfind("\n"))
        hint = f"; {_HINTS[what]}" if what in _HINTS else ""
        raise ConfigError(f"{path}, line {line}, column {column}: {what[:1].lower()}{what[1:]}{hint}") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} is no job file: a number in it is too long, or a list nested too deeply") from None


def _unknown(key: str, value: object) -> str:
    """Say that there is no such key, and which may have been meant."""
    tables = [table for table in (value if isinstance(value, list) else [value]) if isinstance(table, dict)]
    if not tables:
        return f"there is no key {_named(key)} at the top of a job file{_meant(key)}"
    inside = list(dict.fromkeys(name for table in tables for name in table if name in KEYS))
    near = near_names(key.lower(), [*RULE_READERS, LIMITS])
    table = f"[{LIMITS}]" if near == [LIMITS] else f"[[{near[0]}]]" if near else ""
    meant = f"; did you mean {table}?" if table else _meant(key)
    return f"there is no table [{_named(key)}]" + (
        f"; write {', '.join(inside)} at the top, above the first table" if inside else meant
    )


def _named(key: str) -> str:
    return key if _BARE.fullmatch(key) else _shown(key)


def _meant(key: str) -> str:
    keys = [*KEYS, SINKS]
    near = near_names(key.lower(), keys)
    *tables, last = (f"[[{table}]]" for table in RULE_READERS)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; the keys are {', '.join(keys)}; the tables [{LIMITS}], {', '.join(tables)} and {last}"


def _checked(key: str, value: object) -> object:
    """Return the value as the job has it. Raises ConfigError, naming the key and saying what would do."""
    field, takes = KEYS[key]
    try:
        if field in UNSET and is_none(value):
            return UNSET[field]
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None
    if key in DURATIONS | SIZES and isinstance(value, str):
        try:
            value = seconds_of(value) if key in DURATIONS else bytes_of(value)
        except ValueError:
            raise ConfigError(f"{key} must be {takes}, not {_shown(value)}") from None
    try:
        typed = msgspec.convert(value, _TYPES[field])
    except msgspec.ValidationError:
        raise ConfigError(f"{key} must be {takes}, not {_shown(value)}") from None
    try:
        said: dict[str, Any] = {field: _refined(key, typed)}
        if key not in TOGETHER:
            Job(**said)
    except ConfigError as error:
        why = str(error)
        if why.startswith(f"{field} must"):
            raise ConfigError(f"{key}{why.removeprefix(field)}, not {_shown(value)}") from None
        raise ConfigError(f"{key}: {why}") from None
    return said[field]


def _sinks(value: object) -> tuple[str, ...]:
    try:
        return msgspec.convert(value, tuple[str, ...])
    except msgspec.ValidationError:  # The value is not shown, as it may hold a password.
        raise ConfigError(f'{SINKS} must be a list of sinks, such as ["sqlite:results.db"]') from None


def proxy_fields(said: object) -> dict[str, object]:
    """Return the fields of a job for a value of `proxies`: a file, the URL of a list, or `none`.

    Raises ConfigError for an unreadable file, a bad line, and any other value. Its text does not show the value, which
    may contain a password.
    """
    if said == "" or is_none(said):
        return {"proxies": (), "proxies_from": None}
    proxies, proxies_from = pool_file.list_of(said, PROXIES, KEYS[PROXIES].takes)
    return {"proxies": proxies, "proxies_from": proxies_from}


def _refined(key: str, value: Any) -> Any:
    """Return a value of the right type in the form of the job, with canonical URLs."""
    if key == "seeds":
        return tuple(dict.fromkeys(map(seed, value)))
    if key == "proxy-judge":
        return seed(value)
    if key == "contact":
        return checked_contact(value)
    if key == "ca-file":
        return read_authorities(Path(value))
    if key == "headers":
        return tuple(map(normal_header, value))
    if key in ("include", "exclude") and any("\b" in pattern for pattern in value):
        raise ConfigError("\\b in double quotes is a backspace; in 'single quotes' it is the edge of a word")
    return value


def in_keys(sentence: str, dashes: str = "") -> str:
    """Return an error text of `Job` with the keys of the file, or the options with `dashes`, for its fields."""
    for key, (name, _) in KEYS.items():
        if key != name:  # A key with the name of its field may also be a plain word.
            sentence = re.sub(rf"\b{name}\b", dashes + key, sentence)
    return sentence


def _hidden(text: str) -> str:
    """Return a text without the passwords of URLs in it."""
    return re.sub(r"//[^/?#\s\"]*@", "//***@", text)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    text = _hidden(json.dumps(value, default=str, ensure_ascii=False))
    return text if len(text) <= VALUE_CHARS_SHOWN_MAX else text[: VALUE_CHARS_SHOWN_MAX - 3] + "..."


def _line_of(text: str, key: str) -> int | None:
    """Return the number of the line, from 1, on which a top-level key or table begins, or None.

    tomllib does not report lines. So this function finds candidate lines, and lets tomllib parse the text above each
    with the key appended. That fails within a multi-line string, and in a table the key lands elsewhere.
    """
    import tomllib

    name = f"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
    quoted = json.dumps(key)
    for found in islice(re.finditer(rf"^[ \t]*(\[+[ \t]*)?{name}[ \t]*[=.\]]", text, re.MULTILINE), LINES_TRIED_MAX):
        probe = f"[{quoted}]" if found[1] else f"{quoted} = {{}}"
        try:
            if key in tomllib.loads(f"{text[: found.start()]}{probe}"):
                return text.count("\n", 0, found.start()) + 1
        except tomllib.TOMLDecodeError:
            continue
    return None
