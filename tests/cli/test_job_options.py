"""Test `--job`: the file gives the values that the command line omits."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest
from aiohttp import web
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.job_options import job_options
from kadcrawl.cli.options import make_job
from kadcrawl.cli.types import Limit
from kadcrawl.errors import ConfigError
from kadcrawl.peer.job_store import JobRecord
from kadcrawl.settings.job import Job
from kadcrawl.settings.job_file import KEYS
from kadcrawl.settings.unset import UNSET
from kadcrawl.store.store import Store
from tests.support.sites.proxies import ProxyServer
from tests.support.sites.web import Web, tree
from tests.support.swarm.command import LOOPBACK, finished, kadcrawl

LOCAL = 'seeds = ["http://127.0.0.2/"]\n'


def seeds_and_job(text: str, *arguments: str, tmp_path: Path, contact: str | None = None) -> tuple[list[str], Job]:
    """Return the seeds and the job of a file and a command line, in the directory `tmp_path`/data."""
    (tmp_path / "kadcrawl.toml").write_text(text)
    found: list[tuple[list[str], Job]] = []

    @click.command()
    @click.argument("urls", nargs=-1)
    @click.option("--limit", "limits", type=Limit(), multiple=True)
    @job_options
    def command(urls: tuple[str, ...], **options: object) -> None:
        limits = dict(options.pop("limits"))  # type: ignore[call-overload]
        found.append(make_job(urls, options, tmp_path / "data", limits))

    run = CliRunner().invoke(
        command, ["--job", str(tmp_path / "kadcrawl.toml"), *arguments], env={"KADCRAWL_CONTACT": contact}
    )
    if run.exception is not None:
        raise run.exception
    return found[0]


def test_every_option_of_the_job_is_a_key_of_the_file() -> None:
    @job_options
    def command() -> None:
        pass

    options = {option.opts[0].removeprefix("--") for option in command.__click_params__}  # type: ignore[attr-defined]
    assert options - {"job"} == KEYS.keys() - {"seeds"}


@pytest.mark.parametrize(
    ("line", "option", "by_file", "by_option"),
    [
        ("scope = 'any'", "--scope=prefix", {"scope": "any"}, {"scope": "prefix"}),
        ("include = ['a', 'b']", "--include=c", {"include": ("a", "b")}, {"include": ("c",)}),
        ("exclude = ['a', 'b']", "--exclude=c", {"exclude": ("a", "b")}, {"exclude": ("c",)}),
        ("max-depth = 5", "--max-depth=6", {"max_depth": 5}, {"max_depth": 6}),
        ("max-pages = 5", "--max-pages=6", {"max_pages": 5}, {"max_pages": 6}),
        ("delay = 5", "--delay=1", {"delay_s": 5.0}, {"delay_s": 1.0}),
        ("delay = '2 min'", "--delay=1500 ms", {"delay_s": 120.0}, {"delay_s": 1.5}),
        ("sitemaps = true", "--no-sitemaps", {"sitemaps": True}, {}),
        ("canonical = 'honor'", "--canonical=ignore", {"canonical": "honor"}, {}),
        (
            "strip-parameters = ['utm']",
            "--strip-parameters=a",
            {"strip_parameters": ("utm",)},
            {"strip_parameters": ("a",)},
        ),
        ("sort-query = true", "--no-sort-query", {"sort_query": True}, {}),
        ("nofollow = 'ignore'", "--nofollow=obey", {"nofollow": "ignore"}, {}),
        ("twins = 'skip'", "--twins=follow", {"twins": "skip"}, {}),
        ("max-path-queries = 5", "--max-path-queries=6", {"path_queries_max": 5}, {"path_queries_max": 6}),
        ("retries = 5", "--retries=3", {"retries": 5}, {"retries": 3}),
        ("partition = 'url'", "--partition=host", {"partition": "url"}, {"partition": "host"}),
        ("balance = 'off'", "--balance=auto", {"balance": "off"}, {"balance": "auto"}),
        ("block = 5", "--block=20", {"block_urls": 5}, {"block_urls": 20}),
        ("update = 1", "--update=5", {"update_s": 1.0}, {"update_s": 5.0}),
        ("name = 'a'", "--name=b", {"name": "a"}, {"name": "b"}),
        ("contact = 'a@b.c'", "--contact=d@e.f", {"contact": "a@b.c"}, {"contact": "d@e.f"}),
    ],
)
def test_an_option_beats_the_job_file_even_if_it_equals_the_default(
    line: str, option: str, by_file: dict[str, object], by_option: dict[str, object], tmp_path: Path
) -> None:
    assert seeds_and_job(LOCAL + line, tmp_path=tmp_path) == (["http://127.0.0.2/"], Job(**by_file))  # type: ignore[arg-type]
    assert seeds_and_job(LOCAL + line, option, tmp_path=tmp_path)[1] == Job(**by_option)  # type: ignore[arg-type]


def test_the_seeds_of_file_and_command_are_joined(tmp_path: Path) -> None:
    seeds, _ = seeds_and_job(LOCAL, "http://127.0.0.3/", "http://127.0.0.2", tmp_path=tmp_path)
    assert ["http://127.0.0.2/", "http://127.0.0.3/"] == seeds


def test_somebody_elses_seed_in_a_file_needs_a_contact_from_anywhere(tmp_path: Path) -> None:
    foreign = 'seeds = ["https://example.org/"]\n'
    with pytest.raises(ConfigError, match="say who you are"):
        seeds_and_job(foreign, tmp_path=tmp_path)
    assert seeds_and_job(foreign + "contact = 'a@b.c'", tmp_path=tmp_path)[1].contact == "a@b.c"
    assert seeds_and_job(foreign, tmp_path=tmp_path, contact="env@b.c")[1].contact == "env@b.c"
    assert seeds_and_job(foreign + "contact = 'a@b.c'", tmp_path=tmp_path, contact="env@b.c")[1].contact == "env@b.c"


async def test_on_an_old_directory_the_job_file_applies_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    store = Store(tmp_path / "data", 16)
    JobRecord(store).keep(Job(delay_s=7.0, retries=9, max_pages=5, contact="old@b.c"))
    await store.journal.commit()
    store.close()
    _, job = seeds_and_job(LOCAL + "delay = 2", "--max-pages=6", tmp_path=tmp_path)
    assert Job(delay_s=2.0, retries=9, max_pages=6, contact="old@b.c") == job


JOURNALED = Job(
    include=("a",),
    exclude=("b",),
    max_depth=3,
    max_pages=5,
    max_bytes=1000,
    max_time_s=60.0,
    site_pages_max=6,
    path_queries_max=7,
    path_segments_max=8,
    path_repeats_max=9,
    query_parameters_max=10,
    contact="old@b.c",
    strip_parameters=("utm",),
    proxies=("http://203.0.113.7:3128",),
    proxy_judge="http://127.0.0.9/",
)
"""A job with a value for each optional setting that goes with the others."""
NAMES = "headers user-agent robots-token"
RECRAWLED = Job(recrawl_after_s=600.0, recrawl_adaptive=True, recrawl_least_s=60.0, recrawl_most_s=900.0)
BLOOM = Job(recrawl_after_s=600.0, history="bloom", grain_s=60.0)
WEEKLY = Job(recrawl_after_s=2_592_000.0, history="bloom", calendar_grain="week")


async def journal(job: Job, directory: Path) -> None:
    directory.mkdir()
    store = Store(directory, 16)
    JobRecord(store).keep(job)
    await store.journal.commit()
    store.close()


@pytest.mark.parametrize("by_file", [True, False])
@pytest.mark.parametrize(
    ("job", "options"),
    [
        (JOURNALED, "include exclude max-depth max-pages max-site-pages max-path-queries proxies proxy-judge contact "),
        (JOURNALED, "max-bytes max-time max-path-segments max-path-repeats max-parameters strip-parameters"),
        (RECRAWLED, "recrawl-least recrawl-most"),
        (BLOOM, "grain"),
        (WEEKLY, "calendar-grain"),
        (Job(headers=("X-A: 1",), user_agent="mybot/1 (otherbot)", robots_token="otherbot"), NAMES),
    ],
)
async def test_none_unsets_what_an_earlier_run_has_set(job: Job, options: str, by_file: bool, tmp_path: Path) -> None:
    await journal(job, tmp_path / "data")
    names = options.split()
    text = "".join(f"{name} = 'none'\n" for name in names) if by_file else ""
    arguments = [] if by_file else [f"--{name}=none" for name in names]
    _, now = seeds_and_job(LOCAL + text, *arguments, tmp_path=tmp_path)
    left = {KEYS[name].field: UNSET[KEYS[name].field] for name in names if name != "proxies"}
    assert replace(job, **left, **({"proxies": ()} if "proxies" in names else {})) == now  # type: ignore[arg-type]


def test_none_on_the_command_line_unsets_what_the_job_file_sets(tmp_path: Path) -> None:
    assert seeds_and_job(LOCAL + "max-pages = 5", "--max-pages", "none", tmp_path=tmp_path)[1] == Job()
    assert seeds_and_job(
        LOCAL + "recrawl-adaptive = true\nrecrawl-after = 60", "--no-recrawl-adaptive", tmp_path=tmp_path
    )[1] == Job(recrawl_after_s=60.0)
    with pytest.raises(ConfigError, match="none means no value, and cannot go with others"):
        seeds_and_job(LOCAL, "--include=none", "--include=a", tmp_path=tmp_path)


async def test_a_limit_of_the_command_line_beats_the_file_and_both_an_earlier_run(tmp_path: Path) -> None:
    before = (("body_bytes_max", 1), ("redirects_max", 2), ("robots_ttl_s", 3.0))
    await journal(Job(shared_limits=before), tmp_path / "data")
    text = LOCAL + "[limits]\nbody_bytes_max = 4\nredirects_max = 5\nfetches_max = 6\n"
    _, job = seeds_and_job(text, "--limit", "redirects_max=7", "--limit", "url_chars_max=100", tmp_path=tmp_path)
    expected = {"body_bytes_max": 4, "redirects_max": 7, "robots_ttl_s": 3.0, "url_chars_max": 100}
    assert expected == dict(job.shared_limits)
    _, job = seeds_and_job(LOCAL, "--limit", "robots_ttl_s=none", tmp_path=tmp_path)
    assert {"body_bytes_max": 1, "redirects_max": 2} == dict(job.shared_limits)


def test_every_option_that_can_be_unset_is_tried_above() -> None:
    tried = "include exclude max-depth max-pages max-site-pages max-path-queries proxy-judge contact recrawl-least"
    more = (
        "max-time max-path-segments max-path-repeats max-parameters strip-parameters recrawl-most grain recrawl-after "
        "calendar-grain"
    )
    assert {KEYS[name].field for name in f"{tried} {more} {NAMES} max-bytes recrawl-after ca-file".split()} | {
        "proxies_from"
    } == UNSET.keys()


def test_a_short_trial_of_a_lending_job_passes_and_a_useless_option_fails(tmp_path: Path) -> None:
    assert seeds_and_job(LOCAL + "block = 5", "--balance=off", tmp_path=tmp_path)[1].balance == "off"
    with pytest.raises(ConfigError, match="--block would do nothing, as balance off lends no pages"):
        seeds_and_job(LOCAL + 'balance = "off"', "--block=5", tmp_path=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["crawl", "--job", "empty.toml"], "Missing argument 'URL...': a crawl begins with one, or with the seeds in"),
        (["crawl", "--job", "missing.toml"], "cannot read the job file missing.toml"),
        (["start", "--job", "missing.toml"], "cannot read the job file missing.toml"),
        (["start", "--job", "."], "cannot read the job file .: Is a directory"),
        (["crawl", "--job", "bad.toml", "http://127.0.0.2/"], "bad.toml, line 1: there is no key dely"),
        (["check", "bad.toml"], "bad.toml, line 1: there is no key dely"),
        (["check", "--json", "bad.toml"], "bad.toml, line 1: there is no key dely"),
        (["check"], "Missing argument 'FILE'"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_2(
    arguments: Sequence[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.toml").touch()
    Path("bad.toml").write_text("dely = 1")
    run = CliRunner().invoke(main, arguments, env={"KADCRAWL_CONTACT": None})
    assert run.exit_code == 2, run.output
    assert sentence in run.stderr
    assert run.stdout == ""


async def test_a_crawl_by_file_crawls_what_the_file_says(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(10)(site)
        job = tmp_path / "kadcrawl.toml"
        job.write_text(f"seeds = ['{site.url('/0')}']\nexclude = ['/9$']\ndelay = 0")
        run = await kadcrawl("crawl", "--job", str(job), "--data", str(tmp_path / "data"), *LOOPBACK)
        assert run.code == 0, run
        assert {site.url(f"/{n}"): 1 for n in range(9)} == dict(site.fetched) == dict(finished(tmp_path / "data"))


def test_proxies_of_file_or_option_reach_the_job_and_can_be_withdrawn(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.txt"
    ours.write_text("http://me:s3cret@a.example:1\n")
    theirs.write_text("socks5://b.example\n")
    text = LOCAL + f"proxies = '{ours}'\nproxy-judge = 'http://judge.example'\n"
    job = seeds_and_job(text, tmp_path=tmp_path)[1]
    assert (("http://me:s3cret@a.example:1",), None) == (job.proxies, job.proxies_from)
    assert job.proxy_judge == "http://judge.example/"
    assert ("socks5://b.example:1080",) == seeds_and_job(text, f"--proxies={theirs}", tmp_path=tmp_path)[1].proxies
    job = seeds_and_job(text, "--proxies=https://list.example/?key=s3cret", tmp_path=tmp_path)[1]
    assert ((), "https://list.example/?key=s3cret") == (job.proxies, job.proxies_from)
    assert not seeds_and_job(text, "--proxies=", tmp_path=tmp_path)[1].by_proxies


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--proxies={list}"], "proxies need --proxy-judge"),
        (["--proxy-judge=http://judge.example/"], "--proxy-judge would do nothing"),
        (["--proxies={list}", "--proxy-judge=http://127.0.0.2/x"], "127.0.0.2 is a seed's"),
        (["--proxies={list}", "--proxy-judge=judge.example"], "has no scheme"),
        (["--proxies=/no/such", "--proxy-judge=http://judge.example/"], "cannot read the proxies in /no/such"),
        (["--proxies=socks5://me:s3cret@a.example", "--proxy-judge=http://judge.example/"], "into a file"),
        (["--proxies={bad}", "--proxy-judge=http://judge.example/"], "bad.txt, line 2: not the URL of a proxy"),
    ],
)
def test_what_cannot_be_with_proxies_is_said_without_passwords(arguments: list[str], why: str, tmp_path: Path) -> None:
    names = {"list": tmp_path / "list.txt", "bad": tmp_path / "bad.txt"}
    names["list"].write_text("http://a.example\n")
    names["bad"].write_text("http://a.example\nme:s3cret@a.example\n")
    with pytest.raises(ConfigError) as found:
        seeds_and_job(LOCAL, *(argument.format(**names) for argument in arguments), tmp_path=tmp_path)
    assert why in str(found.value)
    assert "s3cret" not in str(found.value)


def test_check_tells_how_many_proxies_and_no_passwords(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("http://me:s3cret@a.example:1\nsocks5://b.example\n")
    for said, shown in (
        (f"{tmp_path}/list.txt", "2 proxies"),
        ("https://l.example/?s3cret", "from https://l.example"),
    ):
        (tmp_path / "kadcrawl.toml").write_text(
            LOCAL + f"scope = 'any'\nproxies = '{said}'\nproxy-judge = 'http://judge.example'\n"
        )
        for form in ([], ["--json"]):
            run = CliRunner().invoke(main, ["check", str(tmp_path / "kadcrawl.toml"), "http://judge.example/x", *form])
            assert run.exit_code == 0, run.output
            assert shown in run.output
            assert "s3cret" not in run.output
            assert "it is on the site of proxy-judge" in run.output


async def test_the_command_crawls_through_proxies_and_shows_no_password(tmp_path: Path) -> None:
    async with Web() as site, Web() as judge, ProxyServer("socks5", ("me", "s3cret")).living() as proxy:
        site.fallback = tree(10)(site)
        judge.fallback = lambda request: web.Response(text="fine")
        (tmp_path / "list.txt").write_text(proxy.url)
        run = await kadcrawl(
            "crawl", site.url("/0"), "--peers", "2", "--delay", "0", *LOOPBACK, "--data", str(tmp_path / "data"),
            "--proxies", str(tmp_path / "list.txt"), "--proxy-judge", judge.url("/"),
        )  # fmt: skip
        assert run.code == 0, run
        assert len(finished(tmp_path / "data")) == 10
        assert proxy.asked.count(site.url("").removeprefix("http://")) >= 1
        logs = "".join(path.read_text() for path in (tmp_path / "data").rglob("*.log"))
        assert "s3cret" not in run.out + run.err + logs
        assert "proxy.alive" in logs


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--user-agent", ""), "the text is empty; none means the default"),
        (("--robots-token", " "), "the text is empty; none means the default"),
        (("--limit", "names"), "The names are url_chars_max, "),
    ],
)
def test_a_value_that_says_nothing_is_refused(arguments: Sequence[str], why: str) -> None:
    done = CliRunner().invoke(main, ["crawl", "http://127.0.0.1:9/", *arguments])
    assert (2, True) == (done.exit_code, why in done.output), done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-pages", "x"], "Invalid value for '--max-pages': 'x' is not a whole number, such as 100"),
        (["--max-pages", "1.5"], "Invalid value for '--max-pages': '1.5' is not a whole number, such as 100"),
        (["--max-pages", "0"], "Invalid value for '--max-pages': 0 is not in the range x>=1."),
        (["--retries", "often"], "Invalid value for '--retries': 'often' is not a whole number, such as 20"),
        (["--in-process", "all"], "Invalid value for '--in-process': 'all' is not a whole number, such as 100"),
        (["--trace-share", "half"], "Invalid value for '--trace-share': 'half' is not a number, such as 1"),
    ],
)
def test_what_is_no_number_is_refused_in_plain_words(arguments: list[str], said: str) -> None:
    refused = CliRunner().invoke(main, ["crawl", "http://a.test/", *arguments])
    assert refused.exit_code == 2
    assert said in refused.output
    assert "integer range" not in refused.output
