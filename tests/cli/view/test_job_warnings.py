"""Rules that never apply are told, each with its reason, and no rule that may apply is."""

import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from kadcrawl.cli.view.job_warnings import job_warnings, patterns_of
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.settings.job import Job
from kadcrawl.settings.page_rules import Field, PageRules, RecordRule, RoleRule
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.urls import canonical

SEED = "https://docs.example.org/guide/index.html"


def record(pattern: str, name: str = "") -> RecordRule:
    return RecordRule(pattern=pattern, name=name, fields=(Field("title", "css:h1::text"),))


def role(pattern: str) -> RoleRule:
    return RoleRule(pattern=pattern, role="next_link")


def site(*match: str) -> SiteRule:
    return SiteRule(match=match, delay_s=5.0)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"include": (r"^https://other\.org/",)}, [r"include '^https://other\.org/' matches no URL near the seeds"]),
        ({"include": (r"^https://docs\.example\.org/",), "scope": "domain"}, []),
        ({"include": (r"^https://other\.org/",), "scope": "domain"}, ["matches no URL near the seeds (scope domain)"]),
        ({"include": (r"^https://other\.org",), "scope": "domain"}, []),
        ({"include": (r"^https://other\.org/",), "scope": "any"}, []),
        ({"exclude": (r"^https://docs\.example\.org/blog/",)}, []),
        ({"exclude": (r"^https://docs\.example\.org/blog/",), "scope": "prefix"}, ["exclude '^https://docs"]),
        ({"exclude": (r"^https://docs\.example\.org/blog/",), "scope": "prefix", "sitemaps": True}, []),
        ({"include": (r"^http://www\.docs\.example\.org/",)}, []),
        ({"exclude": ("#top", "/a b", "/ü")}, ["'#top' matches no URL: no canonical URL has '#'", "'/a b'", "'/ü'"]),
        ({"include": (r"^docs\.example\.org",)}, ["every canonical URL begins with http:// or https://"]),
        ({"include": ("/a/b/",), "exclude": ("/a/",)}, ["include '/a/b/' never applies: exclude '/a/' leaves out"]),
        ({"include": ("/a/",), "exclude": ("/a/b/",)}, []),
        (
            {"records": (record("/item/"), record(r"/item/\d+", "n"))},
            ["'n' never applies: [[records]] '/item/' stands"],
        ),
        ({"records": (record(r"/item/\d+"), record("/item/"))}, []),
        ({"records": (record(r"example\.org"), record("/item/"))}, ["matches every URL near the seeds; swap them"]),
        ({"records": (record(r"example\.org"), record("/item/")), "scope": "any"}, []),
        ({"records": (record("/item/"),), "exclude": ("/item/",)}, ["[[records]] '/item/' never applies: exclude '/i"]),
        ({"roles": (role(".*"), role("/item/"))}, ["[[roles]] '/item/' never applies: [[roles]] '.*' stands above it"]),
        ({"roles": (role("/item/"), role(".*"))}, []),
        ({"sites": (site("other.org"),)}, ["[[sites]] other.org decides about no host near the seeds (scope host)"]),
        ({"sites": (site("docs.example.org"), site("*"))}, []),
        ({"sites": (site("docs.example.org", "www.docs.example.org"), site("*"))}, ["[[sites]] * decides about no"]),
        ({"sites": (site("*.org"), site("*.example.org"))}, ["[[sites]] *.org decides about no host"]),
        ({"sites": (site("example.org"),), "partition": "domain"}, []),
        ({"sites": (site("example.org"),)}, ["[[sites]] example.org decides"]),
        ({"sites": (site("b.example.org"), site("*.org"), site("*.b.org")), "scope": "domain"}, ["[[sites]] *.b.org"]),
        ({"sites": (site("other.org"),), "scope": "any"}, []),
        ({"sites": (site("other.org"),), "seeds": ()}, []),
    ],
)
def test_rules_that_never_apply_are_told_and_no_others(job: dict[str, Any], expected: list[str]) -> None:
    found = job_warnings(Job(**{"seeds": (SEED,)} | job))
    assert len(found) == len(expected)
    for sentence, part in zip(found, expected, strict=True):
        assert part in sentence


def test_nothing_is_said_of_the_scope_while_seeds_are_still_to_come() -> None:
    job = Job(seeds=(SEED,), include=("^https://other\\.org/", "#"), sites=(site("other.org"),), scope="domain")
    assert 3 == len(job_warnings(job))
    (sentence,) = job_warnings(job, all_seeds_known=False)
    assert sentence.startswith("include '#'")


def test_a_job_with_the_most_rules_is_read_at_once() -> None:
    rules = tuple(record(f"/a{number}/") for number in range(200))
    seeds = tuple(f"https://h{number}.org/" for number in range(5_000))
    (sentence,) = job_warnings(Job(seeds=seeds, records=rules, include=("^https://b/",)))
    assert sentence.startswith("include '^https://b/'")


PARTS = ("/a", "/b/", "^https://", "^http://a.test/", "b.test", r"\d", ".*", "a|b", "$", "x?", "(?i)A", "#")
TEXTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("".join).filter(lambda text: _is_pattern(text))


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


@settings(max_examples=300)
@given(
    st.lists(TEXTS, max_size=2), st.lists(TEXTS, max_size=2), st.lists(TEXTS, max_size=3, unique=True),
    st.sampled_from(["host", "domain", "prefix", "any"]), st.booleans(),
    st.lists(st.text("ab/.1?#", max_size=8), min_size=1, max_size=6),
)  # fmt: skip
def test_no_url_that_is_crawled_makes_a_warning_wrong(
    include: list[str], exclude: list[str], records: list[str], scope: Any, sitemaps: bool, paths: list[str]
) -> None:
    job = Job(
        seeds=("https://a.test/a/x",),
        scope=scope,
        sitemaps=sitemaps,
        include=tuple(include),
        exclude=tuple(exclude),
        records=tuple(map(record, records)),
    )
    told = job_warnings(job)
    bounds, rules = Scope(job), PageRules(records=job.records)
    for start in ("https://a.test/", "http://www.a.test/a/", "https://c.a.test/a", "https://b.test/"):
        for path in paths:
            url = canonical(start + path)
            if url is None or not bounds.is_near(url):
                continue
            for pattern in patterns_of(job):
                if not re.search(pattern.facts.pattern, url):
                    continue
                mine = [sentence for sentence in told if sentence.startswith(f"{pattern} ")]
                assert not [sentence for sentence in mine if "matches no URL" in sentence]
                is_first = pattern.kind == "[[records]]" and job.records[rules.record(url) or 0].label == pattern.label
                if bounds.excluded_by(url) is None and (pattern.kind == "include" or is_first):
                    assert not mine
