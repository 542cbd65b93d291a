"""The rules of a job for pages by their URL: the role of a page, and the records to extract from it.

A *role* (P3's two kinds of links) classifies a URL: `next_link` leads on, `detail_request` holds content. A *record
rule* says which records to extract from a page: by fields, each with a CSS or XPath selector, or by a hook, a function
of the machine's own Python. For each kind, the first rule whose pattern is found in the URL applies. Rules travel to
every peer with their job, so they are bounded, and checked wherever they come from. Nothing is extracted here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require
from kadcrawl.settings.value_types import check_types

Role = Literal["next_link", "detail_request"]

RULES_MAX = 200
"""Limit on the rules of either kind in a job."""
FIELDS_MAX = 100
"""Limit on the fields of one rule."""
PATTERN_CHARS_MAX = 1_000
"""Limit on the characters of one pattern or selector."""
NAME_CHARS_MAX = 100
"""Limit on the characters of the name of a rule or field."""
HOOK_CHARS_MAX = 200
"""Limit on the characters of a hook."""
RULES_CHARS_MAX = 200_000
"""Limit on the characters of all rules of a job together, which share a message with its seeds."""

_HOOK = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
SELECTOR_KINDS = ("css:", "xpath:")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRule:
    """A rule that gives a role to all URLs in which `pattern` is found."""

    pattern: str
    """Regular expression that is searched in the canonical URL, 1 to 1,000 characters."""
    role: Role
    """`next_link` for a page that leads on, `detail_request` for a page that holds content."""
    follow: bool | None = None
    """True to follow the links of such pages. None to follow them unless the role is `detail_request`.

    A detail page is a goal of the crawl, so its links are of no interest."""

    def __post_init__(self) -> None:
        check_types(self)
        check_pattern(self.pattern)
        if self.role not in get_args(Role):
            raise ConfigError(f"role must be {' or '.join(get_args(Role))}, not {self.role!r:.60}")

    @property
    def follows(self) -> bool:
        return self.role == "next_link" if self.follow is None else self.follow


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record."""

    name: str
    selector: str
    """``css:`` or ``xpath:`` and an expression, as in Scrapy."""
    every: bool = False
    """True for a list of all matches, False for the first match or None."""

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRule:
    """A rule that extracts records from pages in whose URL `pattern` is found."""

    pattern: str
    """Regular expression that is searched in the canonical URL, 1 to 1,000 characters."""
    name: str = ""
    """Name of the rule in its records, at most 100 characters. By default the pattern."""
    fields: tuple[Field, ...] = ()
    """The fields of a record, at most 100, each a name and a selector.

    A selector is ``css:`` or ``xpath:`` and an expression, as in Scrapy. It gives the first match, or null. A selector
    in a list gives a list of all matches. Fields are for HTML, and a page on which they find nothing has no record."""
    each: str = ""
    """Selector of the elements that are one record each. Empty if the page is one record."""
    hook: str = ""
    """Function that extracts the records, as ``module:function``, in place of `fields`.

    It is called with a `Page`, and returns a dict, a list of dicts, or None."""

    def __post_init__(self) -> None:
        check_types(self)
        check_pattern(self.pattern)
        require(len(self.name) <= NAME_CHARS_MAX, f"name must have at most {NAME_CHARS_MAX} characters")
        require(bool(self.fields) != bool(self.hook), "a rule has either fields or a hook")
        require(not (self.hook and self.each), "each goes with fields; a hook returns a list for several records")
        require(len(self.fields) <= FIELDS_MAX, f"a rule has at most {FIELDS_MAX} fields")
        require(len({field.name for field in self.fields}) == len(self.fields), "a field has one selector")
        for field in self.fields:
            require(0 < len(field.name) <= NAME_CHARS_MAX, f"a field's name has 1 to {NAME_CHARS_MAX} characters")
            check_selector(field.name, field.selector)
        if self.each:
            check_selector("each", self.each)
        check_hook(self.hook)

    @property
    def label(self) -> str:
        return self.name or self.pattern

    @property
    def chars(self) -> int:
        """Number of characters of the whole rule."""
        fields = sum(len(field.name) + len(field.selector) for field in self.fields)
        return len(self.pattern) + len(self.name) + len(self.each) + len(self.hook) + fields


def check_rules(roles: Sequence[RoleRule], records: Sequence[RecordRule]) -> None:
    """Raise ConfigError if these are too many for one job."""
    require(len(roles) <= RULES_MAX, f"a job has at most {RULES_MAX} roles")
    require(len(records) <= RULES_MAX, f"a job has at most {RULES_MAX} records")
    chars = sum(len(rule.pattern) for rule in roles) + sum(rule.chars for rule in records)
    require(chars <= RULES_CHARS_MAX, f"the roles and records of a job have at most {RULES_CHARS_MAX} characters")


def check_hook(hook: str) -> None:
    """Raise ConfigError unless this is empty or names a function of a module. Nothing is imported."""
    if hook and (len(hook) > HOOK_CHARS_MAX or not _HOOK.fullmatch(hook)):
        raise ConfigError(f"hook must be module:function, such as hooks:item, not {hook!r:.60}")


def check_selector(what: str, selector: str) -> None:
    """Raise ConfigError, with the name `what`, unless this is a selector. Nothing is evaluated."""
    if not selector.startswith(SELECTOR_KINDS):
        raise ConfigError(f"{what} must begin with css: or xpath:, as in css:h1::text, not {selector!r:.60}")
    if len(selector) > PATTERN_CHARS_MAX:
        raise ConfigError(f"{what} must have at most {PATTERN_CHARS_MAX} characters")
    # Not at the top: most jobs have no selector, and lxml takes a tenth of a second to load.
    from cssselect import SelectorError
    from lxml.etree import XPath, XPathError
    from parsel.csstranslator import HTMLTranslator

    kind, _, expression = selector.partition(":")
    try:
        path = HTMLTranslator().css_to_xpath(expression) if kind == "css" else expression
        XPath(path)
    except (SelectorError, XPathError, ValueError, RecursionError) as error:
        kind = "CSS" if kind == "css" else "XPath"
        raise ConfigError(f"{what}: {expression!r:.60} is no {kind} selector: {error}") from None


@dataclass(frozen=True)
class PageRules:
    """The rules of one job with their compiled patterns."""

    roles: tuple[RoleRule, ...] = ()
    records: tuple[RecordRule, ...] = ()

    def role(self, url: str) -> RoleRule | None:
        """Return the rule that gives a canonical URL its role."""
        number = _first(self._role_patterns, url)
        return None if number is None else self.roles[number]

    def record(self, url: str) -> int | None:
        """Return the number of the record rule for a canonical URL, or None."""
        return _first(self._record_patterns, url)

    def follows(self, url: str) -> bool:
        """Return whether the links of the page at this URL are followed."""
        rule = self.role(url)
        return rule is None or rule.follows

    @property
    def hooks(self) -> frozenset[str]:
        """The functions that the job calls on each machine."""
        return frozenset(rule.hook for rule in self.records if rule.hook)

    @cached_property
    def _role_patterns(self) -> list[re.Pattern[str]]:
        return [re.compile(rule.pattern) for rule in self.roles]

    @cached_property
    def _record_patterns(self) -> list[re.Pattern[str]]:
        return [re.compile(rule.pattern) for rule in self.records]


def _first(patterns: Sequence[re.Pattern[str]], url: str) -> int | None:
    return next((number for number, pattern in enumerate(patterns) if pattern.search(url)), None)


def check_pattern(pattern: str) -> None:
    """Raise ConfigError unless this is a regular expression of a length that takes no time to read."""
    require(0 < len(pattern) <= PATTERN_CHARS_MAX, f"a pattern must have 1 to {PATTERN_CHARS_MAX} characters")
    require("\b" not in pattern, "\\b in double quotes is a backspace; in 'single quotes' it is the edge of a word")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:  # A count is too large, or the nesting is too deep.
        raise ConfigError(f"pattern {pattern!r:.60} is not a regular expression: {error}") from None
