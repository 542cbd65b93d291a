"""Output: the web is as slow as it says and never ends, and swarms are counted while everybody has work."""

import re
from functools import partial

import pytest
from click.testing import CliRunner

from sim.papers import output as experiment
from sim.papers.__main__ import main
from sim.papers.alike_web import LINKS_OF_HUB, AlikeWeb
from sim.papers.experiment import Finding, Progress, Result
from sim.papers.output import Speed, output, speed, stepped, whole
from sim.papers.registry import EXPERIMENTS, FULL


def links(web: AlikeWeb, url: str) -> list[str]:
    host, _, path = url.removeprefix("http://").partition("/")
    found = re.findall(r'href="([^"]+)"', web.answer(host, f"/{path}", 0).body.decode())
    return [f"http://{host}{link}" if link.startswith("/") else link for link in found]


def test_the_hubs_lead_to_every_site() -> None:
    web = AlikeWeb(1, LINKS_OF_HUB + 1, 2.0)
    homes = [home for hub in web.seeds for home in links(web, hub)]
    assert [f"http://site{number}.test/" for number in range(LINKS_OF_HUB + 1)] == homes
    assert len(web.seeds) == 2


def test_an_endless_web_leads_from_every_page_to_pages_of_its_own() -> None:
    web = AlikeWeb(1, 5, 2.0)
    met: list[str] = []
    frontier = [f"http://site{number}.test/" for number in range(5)]
    for _ in range(5):
        frontier = [link for url in frontier for link in links(web, url)]
        met += frontier
    assert len(met) == len(set(met)) == 5 * (2 + 4 + 8 + 16 + 32)
    assert {f"site{number}.test" for number in range(5)} == {url.split("/")[2] for url in met}
    assert {2.0} == {web.answer("site1.test", path, 0).latency_s for path in ("/", "/x")}


def test_a_web_with_an_end_has_so_many_pages_a_site() -> None:
    web = AlikeWeb(1, 3, 2.0, pages=4)
    homes = links(web, web.seeds[0])
    assert [f"{homes[1]}{page}" for page in (1, 2, 3)] == links(web, homes[1])
    assert [] == links(web, f"{homes[1]}1")


@pytest.mark.worlds
def test_swarms_speed_up_with_their_peers() -> None:
    two, four = speed(1, 2), speed(1, 4)
    assert 0 == two.idle == four.idle
    for one in (two, four):
        # What a peer can do at most, less robots.txt of sites it has just met.
        assert 0.9 / experiment.ANSWER_S < one.pages_s < 1 / experiment.ANSWER_S
    assert four.pages_s >= 0.95 * two.pages_s


def test_the_papers_schedule_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "PERIODS", 3)
    monkeypatch.setattr(experiment, "SCHEDULE", {0: 1, 1: 3, 2: 4})
    done: list[int] = []
    counts = stepped(1, lambda: done.append(1))
    assert len(done) == 3
    most = experiment.PERIOD_S / experiment.PAPER_ANSWER_S
    for count, peers in zip(counts, (1, 3, 4), strict=True):
        assert 0.8 * peers * most < count <= peers * most


@pytest.mark.worlds
def test_a_crawl_to_the_end_is_quicker_when_the_heavy_shed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "WHOLE_PAGES", 12)
    off, level = whole(1, shedding=False), whole(1, shedding=True)
    assert 0.3 < off < level < 1.0


def test_the_result_is_told_with_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = {1: Speed(pages_s=0.5, idle=0.0), 4: Speed(pages_s=0.48, idle=0.0), 8: Speed(pages_s=0.47, idle=0.01)}
    monkeypatch.setattr(experiment, "speed", lambda seed, peers: speeds[peers])
    monkeypatch.setattr(experiment, "whole", lambda seed, shedding: 0.8 if shedding else 0.5)

    def counts(seed: int, period_done: object) -> list[int]:
        return [36] * 5 + [72] * 5 + [108] * 5 + [126] * 5 + [140] * 5

    monkeypatch.setattr(experiment, "stepped", counts)
    shares: list[float] = []
    result = output(3, shares.append, sizes=(1, 4, 8))
    assert sorted(shares) == shares
    assert [pytest.approx(140 / 144), pytest.approx(0.94), 0.5, 0.8] == [one.ours for one in result.findings]
    assert [True, False, None, None] == [one.reached for one in result.findings]
    assert [8, pytest.approx(3.76), 0.47, pytest.approx(0.94), pytest.approx(1.0)] == result.tables[1].rows[-1]
    assert [8, pytest.approx(140 / 3), pytest.approx(140 / 24), pytest.approx(140 / 144)] == result.tables[0].rows[-1]


def test_the_command_does_the_large_one_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def told(size: int, seed: int, progress: Progress) -> Result:
        return Result(title="T", paper="P1", how="h", seed=seed, findings=[Finding(what="size", ours=size)])

    monkeypatch.setitem(EXPERIMENTS, "output", partial(told, 64))
    monkeypatch.setitem(FULL, "output", partial(told, 1_000))
    for options, size in (([], "64"), (["--full"], "1,000")):
        directory = tmp_path_factory.mktemp("papers")
        done = CliRunner().invoke(main, ["-o", str(directory), "--only", "output", *options])
        assert done.exit_code == 0, done.output
        assert f"**{size}**" in (directory / "report.md").read_text()
