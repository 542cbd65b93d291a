"""Test roles and records in a job file: their values, which rule applies, and a clear sentence for each mistake."""

from pathlib import Path
from typing import Any

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import parse
from kadcrawl.settings.page_rules import FIELDS_MAX, RULES_CHARS_MAX, RULES_MAX, Field, PageRules, RecordRule, RoleRule

FILE = Path("kadcrawl.toml")
RULES = """
delay = 2

[[roles]]
pattern = '/item/'
role = "detail_request"

[[roles]]
pattern = '/(list|item)/'
role = "next_link"
follow = false

[[records]]
name = "item"
pattern = '/item/'
each = "css:div"
fields = { title = "css:h1::text", tags = ["xpath:.//a/text()"] }

[[records]]
pattern = '.'
hook = "shop.hooks:any_page"
"""
ROLES = (
    RoleRule(pattern="/item/", role="detail_request"),
    RoleRule(pattern="/(list|item)/", role="next_link", follow=False),
)
RECORDS = (
    RecordRule(
        pattern="/item/",
        name="item",
        each="css:div",
        fields=(Field("title", "css:h1::text"), Field("tags", "xpath:.//a/text()", every=True)),
    ),
    RecordRule(pattern=".", hook="shop.hooks:any_page"),
)


def test_a_file_says_roles_and_records() -> None:
    found = parse(RULES, FILE)
    assert Job(delay_s=2.0, roles=ROLES, records=RECORDS) == found.job
    assert {"delay_s": 2.0, "roles": ROLES, "records": RECORDS} == found.values


@pytest.mark.parametrize(
    ("url", "role", "follows", "record"),
    [
        ("http://a.test/item/1", ROLES[0], False, 0),
        ("http://a.test/list/1", ROLES[1], False, 1),
        ("http://a.test/", None, True, 1),
    ],
)
def test_the_first_rule_whose_pattern_is_found_holds(
    url: str, role: RoleRule | None, follows: bool, record: int
) -> None:
    rules = PageRules(ROLES, RECORDS)
    assert (role, follows, record) == (rules.role(url), rules.follows(url), rules.record(url))
    assert PageRules().role(url) is None
    assert PageRules().record(url) is None
    assert PageRules().follows(url)
    assert {"shop.hooks:any_page"} == rules.hooks


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[roles]\npattern = 'x'", "line 1: roles must be tables, each begun by [[roles]] in double brackets"),
        ("\n[[role]]\npattern = 'x'", "line 2: there is no table [role]; did you mean [[roles]]?"),
        ("[[record]]\npattern = 'x'", "there is no table [record]; did you mean [[records]]?"),
        (
            "[[roles]]\npattern = 'x'\nrole = 'next_link'\n[[roles]]\npatern = 'x'",
            "[[roles]] number 2: there is no key 'patern'; did you mean pattern?",
        ),
        ("[[records]]\nzzz = 1", "there is no key 'zzz'; it has pattern, name, fields, each, hook"),
        ("[[roles]]\nrole = 'next_link'", "pattern is missing"),
        ("[[roles]]\npattern = 'x'", "[[roles]] number 1 (pattern 'x'): role is missing"),
        ("[[roles]]\npattern = 'x'\nrole = 'detail'", "role must be next_link or detail_request, not 'detail'"),
        ("[[roles]]\npattern = 'x'\nrole = 'next_link'\nfollow = 1", "follow must be true or false"),
        ("[[roles]]\npattern = '('\nrole = 'next_link'", "pattern '(' is not a regular expression"),
        ("[[roles]]\npattern = \"\\b\"\nrole = 'next_link'", "\\b in double quotes is a backspace"),
        ("[[records]]\npattern = 'x'", "(pattern 'x'): a rule has either fields or a hook"),
        ("[[records]]\npattern = 'x'\nfields = { a = 1 }", "fields.a must be a selector such as 'css:h1::text'"),
        ("[[records]]\npattern = 'x'\nfields = { a = 'h1' }", "a must begin with css: or xpath:"),
        ("[[records]]\npattern = 'x'\nfields = { a = 'css:h1[' }", "a: 'h1[' is no CSS selector"),
        ("[[records]]\npattern = 'x'\nfields = { a = ['xpath://a['] }", "a: '//a[' is no XPath selector"),
        ("[[records]]\npattern = 'x'\neach = 'css:['\nfields = { a = 'css:a' }", "each: '[' is no CSS selector"),
        ("[[records]]\npattern = 'x'\neach = 'css:a'\nhook = 'a:b'", "each goes with fields"),
        ("[[records]]\npattern = 'x'\nhook = 'hooks.item'", "hook must be module:function, such as hooks:item"),
        ("[[records]]\npattern = 'x'\nhook = 'os:system(1)'", "hook must be module:function"),
    ],
)
def test_a_mistake_is_named_with_its_table_and_what_would_do(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as found:
        parse(text, FILE)
    assert sentence in str(found.value)
    assert str(found.value).startswith("kadcrawl.toml, line ")


@pytest.mark.parametrize(
    "what",
    [
        {"roles": (ROLES[0],) * (RULES_MAX + 1)},
        {"records": (RECORDS[0],) * (RULES_MAX + 1)},
        {"roles": (RoleRule(pattern="x" * 1_000, role="next_link"),) * (RULES_CHARS_MAX // 1_000 + 1)},
    ],
)
def test_a_job_has_so_many_rules_at_most(what: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="at most"):
        Job(**what)


MANY = tuple(Field(str(number), "css:a") for number in range(FIELDS_MAX + 1))


@pytest.mark.parametrize(
    "rule",
    [
        {"pattern": "x", "fields": MANY},
        {"pattern": "x", "name": "n" * 101, "hook": "a:b"},
        {"pattern": "x", "fields": (Field("a", "css:" + "a" * 1_000),)},
        {"pattern": "x" * 1_001, "hook": "a:b"},
        {"pattern": "x", "fields": (Field("", "css:a"),)},
        {"pattern": "x", "fields": (Field("a", "css:a"), Field("a", "css:b"))},
        {"pattern": "x", "hook": "a" * 200 + ":b"},
    ],
)
def test_a_rule_has_so_much_at_most(rule: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RecordRule(**rule)
