"""The pages of settings: the fields of `Config` and `Job`, and the keys of a job file.

Types and defaults are read from the classes, texts from their attribute docstrings, and the values of a key from
`job_file.KEYS`. The options are those of the commands.

Tests: tests/docs/test_settings.py
"""

import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path

from kadcrawl.cli.app import main
from kadcrawl.settings import pool_file, rule_file, site_file
from kadcrawl.settings.config import Config
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import DURATIONS, KEYS, SINKS
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule, RoleRule
from kadcrawl.settings.secrets import Secrets
from kadcrawl.settings.site_rules import SiteRule
from scripts.docs.cli import option_groups
from scripts.docs.docstrings import field_docstrings
from scripts.docs.markdown import code, page, paragraphs, prose, table

CONFIGURATION = "docs/reference/configuration.md"
JOB_FILE = "docs/reference/job-file.md"

CONFIG_OPTIONS = {
    "data": "--data",
    "host": "--listen",
    "port": "--listen",
    "allow_networks": "--allow-network",
    "swarm_key": "--key-file",
    "exit_when_done": "--exit-when-done",
    "network": "--network",
    "powers": "--power",
    "sinks": "--sink",
    "hooks": "--hook",
    "secrets": "--secrets",
    "metrics": "--metrics",
    "web": "--web",
    "web_control": "--web-control",
    "traces": "--traces",
    "trace_share": "--trace-share",
}
"""The option of each field of `Config`. Other fields have none."""

UNITS = {"cell_bits": "bits", "work_area": "URLs", "delay_s": "seconds"}
"""Units that neither the name of a field nor the words of its key tell."""

EXAMPLES = {
    "seeds": 'seeds = ["https://example.org/docs/"]',
    "scope": 'scope = "prefix"',
    "include": "include = ['/docs/', '\\.html$']",
    "exclude": "exclude = ['/old/', '[?]']",
    "max-depth": "max-depth = 5",
    "max-pages": "max-pages = 500",
    "max-bytes": 'max-bytes = "10 GB"',
    "max-time": 'max-time = "12h"',
    "max-site-pages": "max-site-pages = 10_000",
    "max-path-queries": "max-path-queries = 100",
    "max-path-segments": "max-path-segments = 20",
    "max-path-repeats": "max-path-repeats = 2",
    "max-parameters": "max-parameters = 10",
    "session-ids": 'session-ids = "keep"',
    "strip-parameters": 'strip-parameters = ["utm", "click-ids", "ref"]',
    "sort-query": "sort-query = true",
    "sitemaps": "sitemaps = true",
    "canonical": 'canonical = "honor"',
    "nofollow": 'nofollow = "ignore"',
    "twins": 'twins = "skip"',
    "delay": "delay = 2",
    "per-ip": "per-ip = true",
    "retries": "retries = 5",
    "delay-factor": "delay-factor = 5",
    "delay-most": 'delay-most = "30s"',
    "refusals": "refusals = 20",
    "network-wait": 'network-wait = "1h"',
    "partition": 'partition = "domain"',
    "copies": "copies = 4",
    "balance": 'balance = "predictive"',
    "solver": 'solver = "pso"',
    "block": "block = 50",
    "update": "update = 10",
    "recrawl-after": 'recrawl-after = "7d"',
    "recrawl-adaptive": "recrawl-adaptive = true",
    "recrawl-least": 'recrawl-least = "12h"',
    "recrawl-most": 'recrawl-most = "30d"',
    "history": 'history = "bloom"',
    "grain": 'grain = "1d"',
    "calendar-grain": 'calendar-grain = "day"',
    "filters": 'filters = "rbloom"',
    "proxies": 'proxies = "https://example.net/proxies.txt"',
    "proxy-judge": 'proxy-judge = "https://example.net/judge"',
    "simhash": "simhash = true",
    "name": 'name = "docs"',
    "headers": "headers = ['Accept-Language: de']",
    "user-agent": 'user-agent = "examplebot/1.0"',
    "robots-token": 'robots-token = "kadcrawl"',
    "ca-file": 'ca-file = "our-authority.pem"',
    "contact": 'contact = "you@example.org"',
}
"""A line for each key."""
NEEDS = {
    "delay-most": ("delay-factor",),
    "recrawl-adaptive": ("recrawl-after",),
    "recrawl-least": ("recrawl-after", "recrawl-adaptive"),
    "recrawl-most": ("recrawl-after", "recrawl-adaptive"),
    "grain": ("recrawl-after", "history"),
    "calendar-grain": ("recrawl-after", "history"),
    "filters": ("history",),
    "solver": ("balance",),
    "proxies": ("proxy-judge",),
    "proxy-judge": ("proxies",),
}
"""Keys without which a key does nothing."""

WHOLE = """\
```toml title="kadcrawl.toml"
seeds = ["https://example.org/docs/", "https://example.org/list/"]
exclude = ['/old/']              # single quotes keep a backslash
max-site-pages = 500
contact = "you@example.org"
sinks = ["sqlite:results.db"]    # of this machine alone

[[roles]]
pattern = '/item/[0-9]+'         # the first rule found in a URL counts
role = "detail_request"          # holds content: its links are not followed

[[roles]]
pattern = '/list/'
role = "next_link"               # leads on: its links are followed

[[records]]
pattern = '/item/[0-9]+'
name = "item"
fields = { title = "css:h1::text", price = "xpath://span[@class='price']/text()" }
```"""

LIMITS_EXAMPLE = """\
```toml
[limits]
body_bytes_max = "10 MB"       # of the job
fetch_timeout_s = "30 s"       # of the job
links_per_page_max = 5_000     # of the job
warc_bytes_max = "1.5 GiB"     # of the machine
```"""
POOL_EXAMPLES = {"name": '"eu"', "proxies": '"https://example.net/eu.txt"'}
ROLE_EXAMPLES = {"pattern": "'/item/[0-9]+'", "role": '"detail_request"', "follow": "true"}
RECORD_EXAMPLES = {
    "pattern": "'/list/'",
    "name": '"teaser"',
    "fields": '{ text = "css:a::text", links = ["css:a::attr(href)"] }',
    "each": '"css:div.teaser"',
    "hook": '"hooks:item"',
}
SITE_EXAMPLES = {
    "match": '["example.org", "*.example.net"]',
    "off": "true",
    "delay": "0",
    "connections": "4",
    "max-site-pages": "5_000",
    "recrawl-after": '"1d"',
    "retries": "1",
    "max-body": '"2MB"',
    "timeout": '"30s"',
    "headers": "['Accept-Language: de']",
    "user-agent": '"Mozilla/5.0 (compatible; kadcrawl)"',
    "auth": '"basic:wiki-login"',
    "http-secrets": "true",
    "ca-file": '"our-authority.pem"',
    "client-certificate": '"wiki-certificate"',
    "verify": "false",
    "proxies": '"none"',
    "cookies": '"keep"',
    "login": "{ url = 'https://example.org/login', fields = { user = 'me' }, secrets = { password = 'wiki' } }",
    "robots": '"obey"',
    "sitemaps": '"https://example.org/sitemaps/news.xml"',
}
"""A value for each key of a [[sites]] table."""


def generate(root: Path) -> dict[str, str]:
    """Return the pages of `Config` and `Job`, and of the job file."""
    return {CONFIGURATION: _configuration(root), JOB_FILE: _job_file(root)}


def type_in_words(kind: object) -> str:
    """Return a type as a person reads it, its choices spelled out."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(map(type_in_words, arguments))
    if origin is typing.Literal:
        return ", ".join(code(repr(choice)) for choice in arguments)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"tuple of {type_in_words(arguments[0])}"
        return f"({', '.join(map(type_in_words, arguments))})"
    return code("None" if kind is type(None) else getattr(kind, "__name__", str(kind)))


def _configuration(root: Path) -> str:
    return page(
        "Config and Job",
        "the docstrings in `kadcrawl/settings`",
        "`Config` has the settings of one peer, and `Job` the settings of a crawl, the same on every peer. "
        "Both are checked when they are made: a value out of its limits, or values that contradict each "
        "other, raise `ConfigError` with a sentence that says what to do. They are frozen dataclasses, made by keyword "
        "arguments: `Config(data=Path('crawl-data'))`. [Embed a peer](../how-to/embed.md) shows their use.",
        "A field with an option has it in [the commands](cli.md), and a field with a key in "
        "[the job file](job-file.md). [Limits](limits.md) has the fields of `Limits`.",
        "## Config",
        *_fields(root, Config),
        "## Job",
        *_fields(root, Job),
    )


def _fields(root: Path, kind: type) -> Iterator[str]:
    texts, hints = field_docstrings(root, kind), typing.get_type_hints(kind)
    for entry in dataclasses.fields(kind):
        facts = [type_in_words(hints[entry.name]), f"default {_default(entry)}"]
        if unit := unit_of(entry.name):
            facts.append(f"unit: {unit}")
        facts += _ways(kind, entry.name)
        yield f"### `{entry.name}`"
        yield " · ".join(facts)
        yield paragraphs(texts[entry.name], root)


def _default(entry: "dataclasses.Field[typing.Any]") -> str:
    if entry.default_factory in (Limits, Secrets):
        return "`Limits()`" if entry.default_factory is Limits else "`Secrets()`"
    return "none: required" if entry.default is dataclasses.MISSING else code(repr(entry.default))


def unit_of(field: str) -> str:
    """Return the unit of a field, or an empty text if its number counts nothing."""
    if field in UNITS:
        return UNITS[field]
    if field.endswith("_s"):
        return "seconds"
    takes = next((key.takes for key in KEYS.values() if key.field == field), "")
    return takes.partition("a whole number of ")[2]


def _ways(kind: type, field: str) -> Iterator[str]:
    if kind is Config:
        if field in CONFIG_OPTIONS:
            yield f"option {_option_link(CONFIG_OPTIONS[field])}"
        return
    for key, (name, _) in KEYS.items():
        if name == field:
            yield f"job file [{code(key)}](job-file.md#{key})"
            if key != "seeds":
                yield f"option {_option_link(f'--{key}')}"


def _option_link(option: str) -> str:
    """Return a link to the first command that has an option."""
    command = next(
        name for name, command in main.commands.items() for parameter in command.params if option in parameter.opts
    )
    return f"[{code(option)}](cli.md#kadcrawl-{command})"


def key_groups() -> dict[str, list[str]]:
    """Return the keys of a job file by the titles of their groups of options."""
    groups = {"Seeds": ["seeds"]}  # The option of that name takes a file of URLs.
    for title, options in option_groups(main.commands["crawl"]):
        names = [option.opts[0].removeprefix("--") for option in options]
        if keys := [name for name in names if name in KEYS and name != "seeds"]:
            groups[title] = keys
    return groups


def _job_file(root: Path) -> str:
    return page(
        "Job file",
        "`kadcrawl/settings/job_file.py` and the docstrings of `Job`",
        "A job file keeps the settings of a crawl as [TOML](https://toml.io/). `kadcrawl crawl`, `kadcrawl start` and "
        "`kadcrawl check` read it. [Keep a job in a file](../how-to/job-file.md) shows how to work with it.",
        "Each key is an option of `kadcrawl crawl` without its leading dashes, or `seeds`. Keys stand above the first "
        "table. The file has at most 4 MiB, and is UTF-8. A key that does not exist, a value of a wrong type, and "
        "values that contradict each other are errors. The error names the file, the key, and, where a single key is "
        "wrong, its line. An option on the command line wins over the file.",
        "## Example",
        WHOLE,
        "## Keys",
        'A length of time is a number of seconds or a text with a unit, such as `90`, `"500 ms"`, `"15 min"` or '
        '`"7 days"`. `"none"` unsets an optional key, for a directory whose earlier run has set it.',
        *_keys(root),
        "**This machine**",
        table(
            _KEY_HEADER,
            [
                [
                    f'<a id="{SINKS}"></a>{code(SINKS)}',
                    "a list of sinks, in quotes",
                    "",
                    "Destinations of results besides `--data`, as for [`--sink`](cli.md#kadcrawl-crawl). They are no "
                    "part of the job, and only the machine that reads the file uses them.",
                    code('sinks = ["sqlite:results.db"]'),
                ]
            ],
        ),
        "## `[limits]`",
        "This table sets [limits](limits.md#limits-of-a-peer) by their names, such as the size of a body, time-outs "
        "and links of a page. Limits that are set for the job go to all peers, the others are of the machine that "
        'reads the file. Sizes are in bytes or have a unit: `"500 kB"`, `"10 MB"`, `"1.5 GiB"`. Times are as above.',
        LIMITS_EXAMPLE,
        "## `[[roles]]`",
        "A role tells pages that lead on from pages that hold content. Each table is a rule. For a URL the first rule "
        "whose `pattern` is found in it counts. A URL without a rule has no role, and its links are followed. "
        "[Roles and records](../how-to/records-and-roles.md) explains the use.",
        _rule_table(root, RoleRule, rule_file.ROLE_KEYS, ROLE_EXAMPLES),
        "## `[[records]]`",
        "A record rule extracts records from pages into [records.jsonl](records.md). For a URL the first rule whose "
        "`pattern` is found in it counts. A rule has either `fields` or a `hook`.",
        _rule_table(root, RecordRule, rule_file.RECORD_KEYS, RECORD_EXAMPLES),
        "```toml\n"
        + "[[records]]\n"
        + "\n".join(f"{key} = {example}" for key, example in RECORD_EXAMPLES.items() if key != "hook")
        + "\n```",
        "## `[[pools]]`",
        "A pool is a list of proxies with a name, for the rules of single sites. "
        "[Crawl through proxies](../how-to/proxies.md#give-some-sites-proxies-of-their-own) explains the use.",
        table(
            ["key", "value", "example"],
            [[code(key), prose(takes), code(POOL_EXAMPLES[key])] for key, takes in pool_file.POOL_KEYS.items()],
        ),
        f"```toml\n{EXAMPLES['proxy-judge']}\n\n[[pools]]\n"
        + "\n".join(f"{key} = {example}" for key, example in POOL_EXAMPLES.items())
        + "\n```",
        "## `[[sites]]`",
        "A site rule changes settings for single hosts. Each table is a rule. For a URL the rule with the most "
        "specific `match` counts, alone: a host and its port, a host, the longest `*.` and domain, then `*`. What the "
        "rule leaves out is as the job says. [Rules for single sites](../how-to/site-rules.md) explains the use.",
        _site_table(root),
        '```toml\n[[sites]]\nmatch = "example.org"\n'
        + "\n".join(f"{key} = {example}" for key, example in SITE_EXAMPLES.items() if key not in _APART)
        + "\n```",
    )


_APART = ("match", "off", "recrawl-after", "ca-file", "proxies")
"""Keys of a rule that do not go with the others, or need another match or key."""


def _site_table(root: Path) -> str:
    texts = field_docstrings(root, SiteRule)
    rows = [
        [
            code(key),
            prose(takes.partition(", such as")[0]),
            paragraphs(_in_toml(texts[field]), root),
            code(SITE_EXAMPLES[key]),
        ]
        for key, (field, _, takes) in site_file.SITE_KEYS.items()
    ]
    return table(["key", "value", "meaning", "example"], rows)


_KEY_HEADER = ["key", "value", "default", "meaning", "example"]


def _keys(root: Path) -> Iterator[str]:
    texts = field_docstrings(root, Job)
    for title, keys in key_groups().items():
        yield f"**{title}**"
        rows = []
        for key in keys:
            field, takes = KEYS[key]
            rows.append(
                [
                    f'<a id="{key}"></a>{code(key)}',
                    prose(takes.partition(", such as")[0] if key not in DURATIONS else "a length of time"),
                    _default_in_file(field),
                    f"{prose(_in_toml(texts[field].partition(chr(10) * 2)[0]), root)} [More](configuration.md#{field})",
                    code(EXAMPLES[key]),
                ]
            )
        yield table(_KEY_HEADER, rows)


def _in_toml(text: str) -> str:
    """Return the text of a field for a file, which has no None."""
    return re.sub(r"\bTrue to\b", "`true` to", re.sub(r"\bNone (for|to)\b", r"Leave it out \1", text))


def _default_in_file(field: str) -> str:
    value = getattr(Job(), field)
    if isinstance(value, bool):
        return code(str(value).lower())
    if value is None or value in ((), ""):
        return ""
    return code(f'"{value}"' if isinstance(value, str) else f"{value:g}")


def _rule_table(root: Path, kind: type, keys: Mapping[str, type], examples: dict[str, str]) -> str:
    texts = field_docstrings(root, kind)
    words = {str: "text", bool: "true or false", dict: "table"}
    rows = [[code(key), words[keys[key]], paragraphs(_in_toml(texts[key]), root), code(examples[key])] for key in keys]
    return table(["key", "value", "meaning", "example"], rows)
