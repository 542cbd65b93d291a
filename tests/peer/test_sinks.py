"""Test a real peer and its sinks: they get every page while the crawl runs, and missing pages follow later."""

import asyncio
import json
from pathlib import Path

import pytest

from kadcrawl import Config, ConfigError, Job, Peer
from kadcrawl.sinks import delivery
from scripts.kadcrawl_run import page_lines
from tests.support.sinks.readers import in_json_lines, in_sqlite
from tests.support.sites.web import Web, tree
from tests.support.swarm.peers import QUICK

JOB = Job(delay_s=0.0, scope="any")


def peer_with_sinks(path: Path, *sinks: str) -> Peer:
    return Peer(Config(data=path, port=0, allow_networks=("127.0.0.0/8",), limits=QUICK, sinks=sinks), JOB)


async def crawl_until_done(peer: Peer, *urls: str) -> None:
    await peer.crawl(urls)
    async with asyncio.timeout(60):
        await peer.wait_done()


def expected(path: Path) -> dict[str, dict[str, object]]:
    return {line.fields["key"]: line.fields for line in page_lines(path)}


async def test_a_sink_has_every_page_line_when_the_peer_ends(tmp_path: Path) -> None:
    data = tmp_path / "one"
    async with Web() as site:
        site.fallback = tree(60)(site)
        async with peer_with_sinks(data, f"sqlite:{tmp_path}/a.db", f"warc:{tmp_path}/archive") as peer:
            await crawl_until_done(peer, site.url("/0"))
    assert len(expected(data)) == 60
    assert expected(data) == in_sqlite(tmp_path / "a.db")[0]["pages"]
    assert peer.deliveries.shortfalls == []
    (warc,) = (data / "warc").iterdir()
    assert warc.read_bytes() == (tmp_path / "archive" / warc.name).read_bytes()


async def test_a_sink_that_is_down_in_the_middle_gets_everything_when_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DELIVERY_RETRY_S", 0.01)
    monkeypatch.setattr(delivery, "LOG_POLL_S", 0.01)
    data, out, away = tmp_path / "one", tmp_path / "out", tmp_path / "away"
    async with Web() as site:
        site.fallback = tree(200)(site)
        async with peer_with_sinks(data, f"sqlite:{out}/a.db") as peer:
            await crawl_until_done(peer, site.url("/0"))
            async with asyncio.timeout(60):
                while peer.row().lag:
                    await asyncio.sleep(0.01)
            out.rename(away)  # The open database is still written there, until its next failure.
            out.write_text("not a directory")
            (each,) = peer.deliveries.each
            await each.work.close()
            site.fallback = tree(400)(site)
            await crawl_until_done(peer, site.url("/200"))
            async with asyncio.timeout(60):
                while each.why is None:
                    await asyncio.sleep(0.01)
            assert peer.row().lag > 0
            out.unlink()
            away.rename(out)
    found, counts = in_sqlite(out / "a.db")
    assert expected(data) == found["pages"]
    assert len(found["pages"]) > 200
    assert set(counts.values()) == {1}


async def test_a_peer_that_is_broken_off_delivers_the_rest_when_it_runs_again(tmp_path: Path) -> None:
    data, sink = tmp_path / "one", f"jsonl:{tmp_path}/out"
    async with Web() as site:
        site.fallback = tree(60)(site)

        async def break_off() -> None:
            async with peer_with_sinks(data, sink) as peer:
                await crawl_until_done(peer, site.url("/0"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await break_off()
        assert in_json_lines(tmp_path / "out")[0]["pages"] == {}  # Its parts wait to be larger.
        async with peer_with_sinks(data, sink):
            pass
    found, counts = in_json_lines(tmp_path / "out")
    assert expected(data) == found["pages"]
    assert set(counts.values()) == {1}
    part = b"".join(path.read_bytes() for path in (tmp_path / "out/pages").iterdir())
    assert part == (data / "pages.jsonl").read_bytes()


async def test_a_page_line_has_the_key_of_its_url(tmp_path: Path) -> None:
    async with Web() as site, peer_with_sinks(tmp_path / "one") as peer:
        site.fallback = tree(1)(site)
        await crawl_until_done(peer, site.url("/0"))
        await peer.drain()
        line = json.loads((tmp_path / "one/pages.jsonl").read_text())
        assert line["key"] == peer.components.partitioner.locate(line["url"]).key.hex()


async def test_a_sink_that_cannot_be_is_said_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no sink"):
        async with peer_with_sinks(tmp_path / "one", "results.db"):
            pass
    assert not (tmp_path / "one").exists()
