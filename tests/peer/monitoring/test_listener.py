"""Test the listener of a peer: what it answers at which moment of the peer's life, and whom it refuses."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kadcrawl import Config, ConfigError, Job, Leaf, Peer, StartError, StorageError
from kadcrawl.peer.monitoring import listener
from kadcrawl.system.file_names import METRICS_TARGETS
from tests.support.monitored import get, scrape, value
from tests.support.sites.web import Web, tree
from tests.support.swarm.peers import QUICK, MakePeer

ANY_PORT = ("127.0.0.1", 0)


async def test_a_peer_answers_from_its_start_to_its_end(tmp_path: Path) -> None:
    config = Config(data=tmp_path, port=0, limits=QUICK, metrics=ANY_PORT)
    async with Peer(config, Job()) as peer:
        address = peer.metrics_address
        assert (200, "ok\n") == (await get(address, "/healthz"))[:2]
        assert (503, "the peer has not entered its swarm yet\n") == (await get(address, "/readyz"))[:2]
        assert 1 == value(await scrape(address), "peer_state", state="starting")
        await peer.begin()
        assert (200, "ok\n") == (await get(address, "/readyz"))[:2]
        peer.leave_soon()
        await peer.finish()
        assert (503, "the peer leaves or stops\n") == (await get(address, "/readyz"))[:2]
        assert 200 == (await get(address, "/healthz"))[0]
    with pytest.raises(OSError, match=r"Connect call failed|refused"):
        await get(address, "/healthz")


async def test_a_peer_without_metrics_listens_nowhere_else(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer()
    assert peer.metrics_address is None
    assert not (tmp_path / "one" / METRICS_TARGETS).exists()


async def test_a_peer_without_metrics_does_not_load_their_libraries(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from kadcrawl import Config, Job, Peer

async def main():
    async with Peer(Config(data=Path({str(tmp_path)!r}), port=0), Job()) as peer:
        await peer.begin()
        print([name for name in sys.modules if name.startswith(("prometheus_client", "kadcrawl.peer.monitoring.l"))])

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert (0, "[]\n") == (process.returncode, said.decode())


async def test_the_directory_names_the_address_for_prometheus_while_the_peer_runs(tmp_path: Path) -> None:
    async with Peer(Config(data=tmp_path, port=0, metrics=ANY_PORT), Job()) as peer:
        await peer.begin()
        assert peer.metrics_address is not None
        host, port = peer.metrics_address
        expected = [{"targets": [f"{host}:{port}"], "labels": {"peer": peer.contact.id.hex()[:8]}}]
        assert expected == json.loads((tmp_path / METRICS_TARGETS).read_text())
    assert not (tmp_path / METRICS_TARGETS).exists()


async def test_a_peer_whose_journal_fails_is_unhealthy(tmp_path: Path) -> None:
    peer = await Peer(Config(data=tmp_path, port=0, metrics=ANY_PORT), Job()).__aenter__()
    await peer.begin()
    peer._committer.cancel()  # Or else the failure ends the peer at once.
    peer.store.journal.damaged("a test says so")
    status, why, _ = await get(peer.metrics_address, "/healthz")
    assert (503, "the journal refuses all writes; the log says why\n") == (status, why)
    assert 1 == value(await scrape(peer.metrics_address), "journal_failed")
    with pytest.raises(StorageError):
        await peer.__aexit__(None, None, None)


async def test_a_peer_whose_journal_does_not_commit_is_unhealthy(
    make_peer: MakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HEALTH_S", 0.2)
    peer = await make_peer(metrics=ANY_PORT)
    await peer.store.journal.commit()
    peer._committer.cancel()
    assert 200 == (await get(peer.metrics_address, "/healthz"))[0]
    peer.store.meta.set("port", b"1")
    status, why, _ = await get(peer.metrics_address, "/healthz")
    assert (503, "the journal has not committed for 0.2 s\n") == (status, why)


async def test_a_peer_that_joins_is_ready_when_its_cells_are_synced(make_peer: MakePeer, tmp_path: Path) -> None:
    async with Web(4) as site:
        site.fallback = tree(40, 4)(site)
        first = await make_peer()
        await first.crawl([site.url("/0")])
        await asyncio.wait_for(first.wait_done(), 60)
        config = Config(data=tmp_path / "two", port=0, limits=QUICK, metrics=ANY_PORT)
        async with Peer(config) as second:
            assert 503 == (await get(second.metrics_address, "/readyz"))[0]
            await second.join([first.contact.address])
            async with asyncio.timeout(60):
                while (await get(second.metrics_address, "/readyz"))[0] != 200:
                    await asyncio.sleep(0.01)
            assert not second.joining
            assert 0 == second.cells.unsettled


async def test_a_leaf_has_metrics_too(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer()
    async with Leaf(Config(data=tmp_path / "leaf", limits=QUICK, metrics=ANY_PORT)) as leaf:
        assert 503 == (await get(leaf.metrics_address, "/readyz"))[0]
        await leaf.join([peer.contact.address])
        assert (200, "ok\n") == (await get(leaf.metrics_address, "/readyz"))[:2]
        series = await scrape(leaf.metrics_address)
        assert 0 == value(series, "loan_urls", direction="taken")
        assert not [name for name, _ in series if "cells" in name]


@pytest.mark.parametrize(
    ("path", "method", "headers", "expected"),
    [
        ("/", "GET", {}, 404),
        ("/metrics/", "GET", {}, 404),
        ("/metrics", "POST", {}, 405),
        ("/metrics", "GET", {"Host": "evil.example"}, 403),
        ("/metrics?x=1", "GET", {}, 200),
        ("/metrics", "HEAD", {}, 200),
    ],
)
async def test_only_reading_the_three_pages_is_answered(
    path: str, method: str, headers: dict[str, str], expected: int, make_peer: MakePeer
) -> None:
    peer = await make_peer(metrics=ANY_PORT)
    status, text, answered = await get(peer.metrics_address, path, method=method, headers=headers)
    assert expected == status
    assert ("GET, HEAD" if expected == 405 else None) == answered.get("Allow")
    assert "nosniff" == answered["X-Content-Type-Options"]
    assert "Access-Control-Allow-Origin" not in answered
    assert (method == "HEAD") == (text == "")


async def test_silent_connections_keep_nobody_out(make_peer: MakePeer) -> None:
    peer = await make_peer(metrics=ANY_PORT)
    assert peer.metrics_address is not None
    async with AsyncExitStack() as stack:
        readers = []
        for _ in range(listener.METRICS_CONNECTIONS_MAX + 1):
            reader, writer = await asyncio.open_connection(*peer.metrics_address)
            stack.callback(writer.close)
            readers.append(reader)
        assert b"" == await asyncio.wait_for(readers[0].read(), 60)
        assert 200 == (await get(peer.metrics_address, "/healthz"))[0]


async def test_broken_http_is_answered_and_ends_nothing(make_peer: MakePeer) -> None:
    peer = await make_peer(metrics=ANY_PORT)
    assert peer.metrics_address is not None
    reader, writer = await asyncio.open_connection(*peer.metrics_address)
    writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
    assert b" 400 " in await asyncio.wait_for(reader.readline(), 60)
    writer.close()
    assert 200 == (await get(peer.metrics_address, "/healthz"))[0]


async def test_an_address_in_use_is_said(make_peer: MakePeer, tmp_path: Path) -> None:
    peer = await make_peer(metrics=ANY_PORT)
    with pytest.raises(StartError, match=r"cannot listen for --metrics on 127\.0\.0\.1:\d+: .*; choose another"):
        async with Peer(Config(data=tmp_path / "two", port=0, metrics=peer.metrics_address), Job()):
            pass


@pytest.mark.parametrize("address", [("example.org", 1), ("127.0.0.1", 65_536), ("127.0.0.1", -1), ("224.0.0.1", 1)])
def test_an_address_that_is_none_is_refused(address: tuple[str, int], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="of metrics"):
        Config(data=tmp_path, metrics=address)


async def test_an_address_that_others_reach_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Peer(Config(data=tmp_path, port=0, metrics=("0.0.0.0", 0)), Job()):
        assert "metrics.exposed" in caplog.text


async def test_the_lag_of_the_loop_is_watched(make_peer: MakePeer) -> None:
    peer = await make_peer(metrics=ANY_PORT)
    async with asyncio.timeout(60):
        while not value(await scrape(peer.metrics_address), "event_loop_lag_seconds_count"):
            await asyncio.sleep(0.1)
