"""Test that `kadcrawl check` says of URLs exactly the decisions of the crawler."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.commands.check import SEEDS_SHOWN_MAX
from kadcrawl.crawl.scope.explain import explain
from kadcrawl.crawl.scope.scope import Scope
from kadcrawl.keys import cell_of, site_hash, url_key
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import KEYS
from kadcrawl.settings.limits import Limits
from kadcrawl.urls import canonical

SEED = "https://www.example.org/docs/intro.html"
LONG = f"https://www.example.org/docs/{'a' * Limits().url_chars_max}"
URLS = (
    SEED,
    "https://www.example.org/docs/a",
    "HTTP://www.Example.org/docs/%7eb?#c",
    "https://www.example.org/",
    "https://example.org/docs/a",
    "https://www.example.org:8443/docs/a",
    "https://www.example.org/docs/old/a",
    "https://www.example.org/docs/a.pdf",
    "https://example.net/docs/a.html",
    "  https://www.example.org/docs/a ",
    LONG,
    "https://www.example.org/sitemap.xml",
    "https://www.example.org/docs/old/sitemap.xml",
)
JOBS = [
    Job(seeds=(SEED,)),
    Job(seeds=(SEED,), scope="domain", partition="domain"),
    Job(seeds=(SEED,), scope="prefix", partition="url"),
    Job(seeds=(SEED,), scope="any", exclude=("/old/", r"\.pdf$")),
    Job(seeds=(SEED,), include=("/a$", r"\.html$"), exclude=("/old/",), max_depth=2),
    Job(seeds=(SEED,), max_depth=0),
    Job(seeds=(SEED,), exclude=("intro",)),
    Job(),
    Job(scope="prefix"),
    Job(seeds=(SEED,), scope="prefix", include=("/a$",), exclude=("/old/",), sitemaps=True),
    Job(seeds=(SEED,), max_depth=1, path_queries_max=3),
]


def test_a_url_with_a_password_is_out_and_the_password_is_not_shown() -> None:
    verdict, other = explain(
        Job(seeds=(SEED,)), ["https://user:secret@www.example.org/", "ftp://user:secret@b.example/"]
    )
    assert ("https://***@www.example.org/", False, "credentials") == (verdict.url, verdict.in_scope, verdict.reason)
    assert ("ftp://***@b.example/", "scheme") == (other.url, other.reason)
    assert "secret" not in f"{verdict} {other}"


STARVED = """
seeds = ["https://a.test/"]
include = ['^https://b\\.test/', '/x']
[[records]]
pattern = '/item/'
hook = "no_such_module:item"
[[records]]
pattern = '/item/\\d+'
hook = "json:no_such_function"
"""


def test_rules_that_never_apply_and_hooks_that_are_not_there_are_told(tmp_path: Path) -> None:
    out = check_job(tmp_path, STARVED, "https://a.test/item/1", "https://a.test/y")
    warnings = [line.removeprefix("WARNING: ") for line in out.splitlines() if line.startswith("WARNING: ")]
    expected = [
        r"include '^https://b\.test/' matches no URL near the seeds (scope host)",
        r"[[records]] '/item/\d+' never applies: [[records]] '/item/' stands above it",
        "hook no_such_module:item: this machine lacks a hook of the job: ModuleNotFoundError",
        "hook json:no_such_function: this machine lacks a hook of the job: module json has no function",
    ]
    assert [told.startswith(begin) for told, begin in zip(warnings, expected, strict=True)] == [True] * 4, warnings
    assert "put its module into that directory or install it" in warnings[2]
    assert out.partition("rules that match none of these URLs\n")[2].splitlines() == [
        r"  include '^https://b\.test/'",
        "  include '/x'",
    ]
    (tmp_path / "kadcrawl.toml").write_text(STARVED)
    told = CliRunner().invoke(main, ["check", str(tmp_path / "kadcrawl.toml"), "--json"])
    assert warnings == json.loads(told.output)["warnings"]


@pytest.mark.parametrize("job", JOBS)
def test_a_verdict_is_the_one_of_the_crawler(job: Job) -> None:
    scope = Scope(job)
    for verdict in explain(job, URLS):
        assert verdict.canonical == canonical(verdict.url)
        assert verdict.canonical is not None
        assert verdict.reason == scope.why_not(verdict.canonical, 0 if verdict.canonical in job.seeds else 1)
        assert verdict.in_scope is (verdict.reason is None)
        assert verdict.why


@pytest.mark.parametrize(
    ("job", "url", "reason", "why"),
    [
        (JOBS[0], SEED, None, "it is a seed"),
        (JOBS[0], "https://www.example.org/x", None, "www.example.org is the host of a seed"),
        (JOBS[0], "http://example.org/x", None, "example.org is the host of a seed, with or without www."),
        (JOBS[1], "https://a.example.org/x", None, "example.org is the domain of a seed"),
        (JOBS[2], "https://www.example.org/docs/x", None, "it is below the path of a seed"),
        (JOBS[9], "https://www.example.org/sitemap.xml", None, "it is near a seed and named like a sitemap (sitemaps)"),
        (JOBS[3], "https://example.net/", None, "every link is followed (scope any)"),
        (
            JOBS[4],
            "https://www.example.org/a",
            None,
            "www.example.org is the host of a seed, and it matches include '/a$', if at most 2 links away from one",
        ),
        (
            JOBS[10],
            "https://www.example.org/?a",
            None,
            "www.example.org is the host of a seed, if at most 1 link away from one and among the first 3 with a query "
            "at its path (max-path-queries)",
        ),
        (JOBS[0], "https://a.b/", "scope", "a.b is not the host of a seed (scope host)"),
        (JOBS[1], "https://x.co.uk/", "scope", "x.co.uk is not the domain of a seed (scope domain)"),
        (JOBS[2], "https://www.example.org/", "scope", "it is not below the path of a seed (scope prefix)"),
        (JOBS[3], "https://a.b/c.pdf", "exclude", "it matches exclude '\\\\.pdf$'"),
        (JOBS[4], "https://www.example.org/b", "include", "it matches no include"),
        (JOBS[5], "https://www.example.org/b", "depth", "it is not a seed (max-depth 0)"),
        (JOBS[6], SEED, "exclude", "it matches exclude 'intro'"),
        (
            JOBS[0],
            "https://www.example.org/a/b/a/b/a/b/a/b",
            "path_repeats",
            "its path repeats itself more than 3 times in a row (max-path-repeats)",
        ),
        (
            JOBS[0],
            f"https://www.example.org/{'/'.join(map(str, range(33)))}",
            "path_segments",
            "its path has more than 32 segments (max-path-segments)",
        ),
        (
            JOBS[0],
            f"https://www.example.org/?{'&'.join(map(str, range(51)))}",
            "query_parameters",
            "its query has more than 50 parameters (max-parameters)",
        ),
        (JOBS[0], LONG, "length", f"it has {len(LONG)} characters, and a URL that is crawled at most 2083"),
        (JOBS[0], "ftp://a.b/", "scheme", "'ftp://a.b/' cannot be crawled: only http and https URLs can, not ftp"),
        (JOBS[0], "a.b/c", "scheme", "'a.b/c' has no scheme: did you mean https://a.b/c?"),
        (JOBS[0], "", "scheme", "'' is not a URL; one looks like https://example.org/"),
        (JOBS[0], "http://[a/", "url", "'http://[a/' is not a URL; one looks like https://example.org/"),
        (JOBS[0], "http://a.b/\N{NO-BREAK SPACE}", "scope", "a.b is not the host of a seed (scope host)"),
        (
            JOBS[0],
            f"http://a.b/{'a' * 8192}",
            "length",
            "'http://a.b/aaaaaaaaaaaaaaaaaaaaaaaaaaaaa'... is too long: a URL may have 8192 characters",
        ),
    ],
)
def test_the_rule_that_decides_is_named(job: Job, url: str, reason: str | None, why: str) -> None:
    (verdict,) = explain(job, [url])
    assert (reason, why) == (verdict.reason, verdict.why)
    assert (verdict.canonical is None) is (verdict.site is None) is (verdict.key is None) is (verdict.cell is None)


@pytest.mark.parametrize("kept", ["strip", "keep"])
def test_a_link_is_shown_as_the_crawl_would_follow_it(kept: Literal["strip", "keep"]) -> None:
    given = f"https://www.example.org/a?x=1&PHPSESSID={'0a' * 13}"
    (verdict,) = explain(Job(seeds=(SEED,), session_ids=kept), [given])
    assert (given if kept == "keep" else "https://www.example.org/a?x=1") == verdict.canonical


def test_the_place_of_a_url_is_the_one_the_peers_give_it() -> None:
    job = Job(seeds=(SEED,), partition="domain", delay_s=3)
    (verdict,) = explain(job, ["https://WWW.example.org:8443/a"])
    key = url_key(site_hash("example.org"), "https://www.example.org:8443/a")
    assert ("example.org", key.hex(), cell_of(key, 16), 3) == (
        verdict.site,
        verdict.key,
        verdict.cell,
        verdict.delay_s,
    )


def check_job(tmp_path: Path, text: str, *arguments: str) -> str:
    (tmp_path / "kadcrawl.toml").write_text(text)
    run = CliRunner().invoke(main, ["check", str(tmp_path / "kadcrawl.toml"), *arguments])
    assert run.exit_code == 0, run.output
    return run.stdout


def test_what_is_not_default_is_shown_and_which_seeds_are_not_crawled(tmp_path: Path) -> None:
    text = check_job(
        tmp_path, 'seeds = ["http://127.0.0.2", "http://127.0.0.2/x?y"]\nexclude = ["[?]"]\nmax-depth = 1\nretries = 3'
    )
    assert text.splitlines()[1:] == [
        "",
        "setting    value  default",
        "exclude    '[?]'  none",
        "max-depth  1      no limit",
        "",
        "seeds",
        "  http://127.0.0.2/",
        "  http://127.0.0.2/x?y  (not crawled: it matches exclude '[?]')",
    ]


def test_what_sitemaps_canonical_links_and_near_duplicates_do_is_explained(tmp_path: Path) -> None:
    notes = ("sitemaps: ", "canonical: ", "twins: ")
    both = "sitemaps = true\ncanonical = 'honor'"
    for text, said in (
        ("", []),
        ("sitemaps = true", [notes[0]]),
        (both, [*notes[:2]]),
        (f"{both}\ntwins = 'skip'", [*notes]),
    ):
        assert said == [
            line.split()[0] + " " for line in check_job(tmp_path, text).splitlines() if line.startswith(notes)
        ]


def test_what_the_job_lacks_is_said(tmp_path: Path) -> None:
    assert check_job(tmp_path, "").splitlines()[1:] == [
        "",
        "All settings are the defaults.",
        "",
        "No seeds: a crawl with this job needs a URL.",
    ]
    assert "No contact: a crawl with this job needs --contact or KADCRAWL_CONTACT" in check_job(
        tmp_path, "seeds = ['https://example.org/']"
    )
    assert "No contact" not in check_job(tmp_path, "contact = 'a@b.c'\nseeds = ['https://example.org/']")


@pytest.mark.parametrize("more", [0, 1])
def test_of_many_seeds_some_are_shown_and_the_others_counted(more: int, tmp_path: Path) -> None:
    lines = check_job(
        tmp_path, f"seeds = {[f'http://127.0.0.2/{n}' for n in range(SEEDS_SHOWN_MAX + more)]}"
    ).splitlines()
    assert SEEDS_SHOWN_MAX == sum(line.startswith("  http") for line in lines)
    assert lines.count("  ... and 1 more") == more


def test_urls_never_make_a_job_bad(tmp_path: Path) -> None:
    text = check_job(tmp_path, "delay = 0.5", "nonsense", "ftp://a.b/", "http://a.b/c#d")
    assert "\nnonsense\n  in scope   no: 'nonsense' has no scheme" in text
    assert "\n  canonical  http://a.b/c\n" in text
    assert "\n  delay      0.5 seconds, or what robots.txt asks for if that is more\n" in text
    text = check_job(tmp_path, "delay-factor = 5\ndelay-most = '30s'", "http://a.b/")
    assert "\n  delay      1 second, or 5 times an answer up to 30 seconds, or what robots.txt" in text


def test_the_rule_for_a_site_is_shown_at_each_url_that_it_decides_about(tmp_path: Path) -> None:
    text = check_job(
        tmp_path,
        "[[sites]]\nmatch = ['*.a.test', 'b.test']\ndelay = 5\nsitemaps = true\n"
        "[[sites]]\nmatch = 'x.a.test'\noff = true",
        "http://www.a.test/",
        "http://x.a.test/",
        "http://c.test/",
    )
    rule = "*.a.test, b.test: delay = 5.0, sitemaps = true"
    assert f"\nsites, of which the most specific match decides about a URL\n  {rule}\n  x.a.test: off = true\n" in text
    of_url = text.split("\n\nhttp://")
    assert f"  delay      5 seconds, or what robots.txt asks for if that is more\n  rule       {rule}" in of_url[1]
    assert "  rule       x.a.test: off = true" in of_url[2]
    assert "  rule " not in of_url[3]


def test_json_says_the_same_for_machines(tmp_path: Path) -> None:
    text = check_job(
        tmp_path,
        f"seeds = ['{SEED}', 'https://a.b/old']\nexclude = ['/old']\ndelay = 2",
        "--json",
        SEED,
        "https://a.b/old",
        "x",
    )
    answer: dict[str, Any] = json.loads(text)
    keys = ["file", "settings", "sinks", "limits", "changed", "seeds", "contact_missing"]
    keys += ["roles", "records", "pools", "sites", "urls", "warnings"]
    assert keys == list(answer)
    default = Job()
    settings = {key: getattr(default, field) for key, (field, _) in KEYS.items() if key not in ("seeds", "proxies")}
    settings = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    assert settings | {"exclude": ["/old"], "delay": 2.0, "proxies": ""} == answer["settings"]
    assert (["exclude", "delay"], True) == (answer["changed"], answer["contact_missing"])
    assert [
        {"url": SEED, "in_scope": True, "reason": None},
        {"url": "https://a.b/old", "in_scope": False, "reason": "exclude"},
    ] == answer["seeds"]
    first, second, third = answer["urls"]
    assert {
        "url": SEED,
        "canonical": SEED,
        "stripped": [],
        "site": "www.example.org",
        "key": url_key(site_hash("www.example.org"), SEED).hex(),
        "cell": cell_of(url_key(site_hash("www.example.org"), SEED), 16),
        "delay_s": 2.0,
        "in_scope": True,
        "reason": None,
        "why": "it is a seed",
        "role": None,
        "follows": True,
        "record_rule": None,
        "site_rule": None,
    } == first
    assert ("exclude", "scheme") == (second["reason"], third["reason"])
    assert third["canonical"] is None


def test_what_is_taken_out_of_a_url_is_named(tmp_path: Path) -> None:
    text = check_job(
        tmp_path,
        "seeds = ['https://a.b/?utm_id=1']\nstrip-parameters = ['utm', 'ref']\nsort-query = true",
        "https://a.b/x?z=1&utm_id=2&ref=3&a",
        "https://a.b/?utm_id=1",
    )
    assert "strip-parameters: links are followed without these parameters of their query\n  utm: utm_*\n" in text
    assert "  canonical  https://a.b/x?a&z=1\n  without    utm_id, ref (strip-parameters)\n" in text
    assert "  in scope   yes: it is a seed\n  canonical  https://a.b/?utm_id=1\n  site" in text


def test_help_teaches_with_a_job_that_is_good(tmp_path: Path) -> None:
    run = CliRunner().invoke(main, ["check", "--help"], terminal_width=120)
    example = run.stdout[run.stdout.index("seeds = ") : run.stdout.index("For each URL")]
    assert "max-pages" in check_job(tmp_path, "\n".join(line.strip() for line in example.splitlines()))


def test_login_hooks_are_named_with_a_warning_if_this_machine_lacks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logins_to_check.py").write_text("def wiki(page):\n    return {}\n")
    login = "login = { url = 'https://www.example.org/login', hook = 'logins_to_check:NAME' }"
    text = f"seeds = ['{SEED}']\ncontact = 'me@example.org'\n[[sites]]\nmatch = 'www.example.org'\ncookies = 'keep'\n"
    said = check_job(tmp_path, text + login.replace("NAME", "wiki"))
    assert "login hooks that each machine needs (join --hook): logins_to_check:wiki\n" in said
    assert "WARNING" not in said
    said = check_job(tmp_path, text + login.replace("NAME", "gone"))
    assert "this machine lacks the login hook logins_to_check:gone of the job: module logins_to_check has" in said
