"""Records by the command: the example as a person would run it, rules tried on a saved page, and kill -9 in between."""

import asyncio
import json
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner

from kadcrawl.cli.app import main
from scripts.kadcrawl_run import page_lines
from sim.sample_pages import SITES
from sim.sample_web import SampleWeb
from tests.support.records import records
from tests.support.sites.web import Web, html, slow
from tests.support.swarm.command import (
    address_of,
    children,
    crawl,
    ended,
    interrupted,
    joinable,
    kadcrawl,
    start,
    until,
)

EXAMPLE = Path("scripts/records/kadcrawl.toml")
ALMANAC = [site.name for site in SITES].index("almanac")


async def test_the_example_runs(tmp_path: Path) -> None:
    async with SampleWeb() as sample:
        seed = sample.seeds[ALMANAC]
        run = await kadcrawl(
            *("crawl", seed, "--job", str(EXAMPLE), "--peers", "2", "--allow-network", "127.0.0.0/8"),
            *("--data", str(tmp_path), "--summary", str(tmp_path / "summary.json")),
        )
    assert run.code == 0, run
    lines = list(page_lines(tmp_path))
    assert not [line for line in lines if line.failed or line.fields.get("record_error")]
    roles = {line.url: line.fields.get("role") for line in lines}
    details = {url for url, role in roles.items() if role == "detail_request"}
    assert details == {url for url in roles if re.search("/topic-[56]/", url)}
    assert {"detail_request", "next_link"} == set(roles.values())
    found = {one["url"]: one for one in records(tmp_path)}
    assert details == found.keys()
    assert len(found) == len(records(tmp_path))
    assert len(found) == json.loads((tmp_path / "summary.json").read_text())["records"]
    assert f", {len(found)} records, " in run.out
    for url, one in found.items():
        by_fields = "/topic-5/" in url
        assert one["rule"] == ("article" if by_fields else "word count")
        assert one["record"].keys() == ({"title", "links"} if by_fields else {"title", "words", "commonest"})
        assert one["record"]["title"].startswith("almanac ")


async def test_pages_whose_hook_fails_are_counted_and_named_at_the_end(tmp_path: Path) -> None:
    job = tmp_path / "kadcrawl.toml"
    job.write_text("[[records]]\npattern = '/[01]$'\nhook = 'tests.support.hooks:raises'\n")
    data, summary = tmp_path / "data", tmp_path / "summary.json"
    async with Web() as site:
        site.fallback = lambda request: html("/0", "/1", "/2")
        run = await kadcrawl(*crawl(data, site.url("/")), "--job", str(job), "--summary", str(summary))
    assert run.code == 0, "the crawl is whole"
    assert ", 0 records, 2 record_errors, 4 of 4 URLs done (0 failed)" in run.out
    assert f"""  grep -h '"record_error":' {data}/peer-1/pages.jsonl """ in run.out
    assert 2 == json.loads(summary.read_text())["record_errors"]
    assert 2 == len([line for line in page_lines(data) if line.fields.get("record_error")])


@pytest.mark.parametrize("module", ["msgspec", "uvloop", "parsel", "signal"])
async def test_nothing_is_imported_from_where_a_crawl_is_begun(module: str, tmp_path: Path) -> None:
    """Anybody may have put it there, and peers are told the key."""
    job = tmp_path / "kadcrawl.toml"
    job.write_text("[[records]]\npattern = '/0'\nfields = { title = 'css:title::text' }\n")
    (tmp_path / f"{module}.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    async with Web() as site:
        site.fallback = lambda request: web.Response(text="<title>T</title>", content_type="text/html")
        data = tmp_path / "data"
        run = await ended(await start(*crawl(data, site.url("/0")), "--job", str(job), directory=tmp_path))
    assert run.code == 0, run
    assert [one["record"] for one in records(data)] == [{"title": "T"}]
    assert not (tmp_path / "ran").exists()


async def test_a_crawl_killed_again_and_again_has_each_record_exactly_once(tmp_path: Path) -> None:
    job = tmp_path / "kadcrawl.toml"
    job.write_text("[[records]]\npattern = '/item/'\nfields = { n = 'css:h1::text' }\n")
    async with Web(3) as site:

        def page(request: web.BaseRequest) -> web.StreamResponse:
            if request.path == "/":
                return html(*(f"/item/{number}" for number in range(40)))
            return web.Response(text=f"<h1>{request.path}</h1>", content_type="text/html")

        site.fallback = slow(page, 0.02)
        command = [*crawl(tmp_path, *(site.url("/", one) for one in range(3))), "--job", str(job)]
        for round_ in range(2):
            process = await start(*command)
            await until(lambda least=30 + 30 * round_: len(records(tmp_path)) >= least, process)
            for pid in (*children(process), process.pid):
                os.kill(pid, signal.SIGKILL)
            await ended(process)
        run = await kadcrawl(*command)
        assert run.code == 0, run
        expected = {site.url(f"/item/{number}", one) for one in range(3) for number in range(40)}
    found = Counter(one["url"] for one in records(tmp_path))
    assert dict.fromkeys(expected, 1) == found
    assert f", {len(expected)} records, " in run.out, "those of the runs before as well"


def run_check(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *arguments])
    return result.exit_code, result.output


def test_check_says_which_role_and_rule_a_url_has() -> None:
    code, said = run_check(
        str(EXAMPLE), "http://a.test/topic-5/page-1.html", "http://a.test/topic-1/", "http://a.test/x"
    )
    assert 0 == code
    assert "article: title, links" in said
    assert "word count: hook scripts.records.hooks:word_count" in said
    assert re.findall("  (?:role|records)  .*", said) == [
        "  role       detail_request, links not followed",
        "  records    by rule article",
        "  role       next_link, links followed",
        "  records    none",
        "  role       none, links followed",
        "  records    none",
    ]


def test_rules_can_be_tried_on_a_saved_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1>One</h1><p>two two <a href=/three>three</a></p>")
    url = "http://a.test/topic-5/page.html"
    assert (0, '{"title":"One","links":["/three"]}\n') == run_check(str(EXAMPLE), "--page", str(page), url)
    code, said = run_check(str(EXAMPLE), "--page", str(page), url.replace("5", "6"))
    assert (0, {"title": "One", "words": 3, "commonest": "two"}) == (code, json.loads(said))
    page.write_text("")
    assert (0, "The page has no records by rule article.\n") == run_check(str(EXAMPLE), "--page", str(page), url)
    for arguments, why in (
        ((str(page),), "--page goes with one URL"),
        ((str(page), "http://a.test/x"), "no pattern of a [[records]] table is found in http://a.test/x"),
        ((str(tmp_path / "none"), url), "cannot read"),
    ):
        code, said = run_check(str(EXAMPLE), "--page", *arguments)
        assert 2 == code
        assert why in said


def test_no_page_steers_the_terminal_of_who_tries_rules_on_it(tmp_path: Path) -> None:
    """Records keep their values for any terminal. Characters that a person sees stay as they are."""
    page, job = tmp_path / "page.html", tmp_path / "job.toml"
    title = "a\x9b2J\u202ebc\u200b\U000e0041\x7f \u4e2d\U0001f600"
    page.write_text(f"<meta charset=utf-8><h1>{title}</h1>", encoding="utf-8")
    code, said = run_check(str(EXAMPLE), "--page", str(page), "http://a.test/topic-5/page.html")
    assert 0 == code
    assert said.rstrip("\n").isprintable()
    assert title == json.loads(said)["title"]
    assert "\u4e2d\U0001f600" in said
    job.write_text("[[records]]\npattern = '.'\nhook = 'tests.support.hooks:quotes'\n")
    code, said = run_check(str(job), "--page", str(page), "http://a.test/")
    assert 2 == code
    assert said.rstrip("\n").isprintable()
    code, said = run_check(str(job), "ftp://a.test/\x9b2J")
    assert 0 == code
    assert all(line.isprintable() for line in said.split("\n"))


def test_what_goes_wrong_on_a_saved_page_is_said(tmp_path: Path) -> None:
    job, page = tmp_path / "job.toml", tmp_path / "page.html"
    job.write_text("[[records]]\npattern = '.'\nhook = 'tests.support.hooks:raises'\n")
    page.write_text("x")
    code, said = run_check(str(job), "--page", str(page), "http://a.test/")
    assert 2 == code
    assert "ValueError: as it was told (hooks.py:" in said


async def test_a_worker_does_not_outlive_its_peer(tmp_path: Path) -> None:
    job = tmp_path / "kadcrawl.toml"
    job.write_text("[[records]]\npattern = '.'\nfields = { n = 'css:h1::text' }\n")
    async with Web() as site:
        over = asyncio.Event()

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            await over.wait()
            return html()

        site.fallback = page
        process = await start(*crawl(tmp_path, site.url()), "--job", str(job))
        await until(lambda: site.fetched, process)
        (peer,) = children(process)
        (worker,) = map(int, Path(f"/proc/{peer}/task/{peer}/children").read_text().split())
        for pid in (peer, process.pid):
            os.kill(pid, signal.SIGKILL)
        await ended(process)
        async with asyncio.timeout(60):
            while Path(f"/proc/{worker}").exists() and "Z" not in Path(f"/proc/{worker}/stat").read_text().split():
                await asyncio.sleep(0.02)
        over.set()


async def test_a_hook_has_no_end_of_a_pipe_that_is_its_peers(tmp_path: Path) -> None:
    """A hook with such a pipe could speak to `kadcrawl crawl` as the peer.

    A process that the hook starts would also hide the death of the peer.
    """
    job = tmp_path / "kadcrawl.toml"
    job.write_text("[[records]]\npattern = '.'\nhook = 'tests.support.hooks:holds'\n")
    async with Web() as site:
        site.fallback = lambda request: web.Response(text="<p>1</p>", content_type="text/html")
        run = await kadcrawl(*crawl(tmp_path, site.url()), "--job", str(job))
    assert run.code == 0, run
    (held,) = (one["record"] for one in records(tmp_path))
    of_worker, of_peer = (
        [what for number, what in held[name].items() if number != "2" and what.startswith("socket:")]
        for name in ("worker", "peer")
    )
    assert 2 == len(of_worker), "where it is asked, and where it answers"
    assert not set(of_worker) & set(of_peer)
    assert len(of_peer) == len(set(of_peer)), "nor has a peer its own twice"


async def test_who_joins_says_which_hook_may_be_called(tmp_path: Path) -> None:
    job = tmp_path / "kadcrawl.toml"
    job.write_text("seeds = ['http://127.0.0.1:9/']\n[[records]]\npattern = '.'\nhook = 'tests.support.hooks:title'\n")
    one = await joinable("--job", str(job), "--delay", "9", data=tmp_path / "one")
    address = await address_of(one)
    join = ("join", "--bootstrap", address, "--listen", "127.0.0.1:0", "--data", str(tmp_path / "two"))
    refused = await kadcrawl(*join)
    assert refused.code == 2, refused
    assert "join with --hook tests.support.hooks:title" in refused.err
    two = await start(*join, "--hook", "tests.support.hooks:title")
    assert two.stderr is not None
    async with asyncio.timeout(60):
        await two.stderr.readuntil(b"others join with")
    for process in (two, one):
        await interrupted(process)
