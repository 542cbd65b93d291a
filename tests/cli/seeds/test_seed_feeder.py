"""The feeder waits for answers, goes on at the place a peer knows, and keeps a silent stream open."""

import asyncio
import os
from pathlib import Path

import pytest

from kadcrawl.cli.seeds import seed_feeder
from kadcrawl.cli.seeds.seed_feeder import BATCHES_MAX, FeedFigures, SeedFeeder
from kadcrawl.cli.seeds.seed_file import SeedBatch
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.seed_messages import STREAM_URLS_MAX, SeedsStreamed, StreamSeeds
from tests.cli.seeds.conftest import OpenSeeds


class AnsweringPeer:
    """A peer that answers messages, and journals their places."""

    def __init__(self, offset: int = 0, lines: int = 0) -> None:
        self.place = offset, lines
        self.messages: list[StreamSeeds] = []
        self.under_way = self.most_under_way = 0
        self.dies_after: int | None = None
        self.failed: set[str] = set()

    async def send(self, message: StreamSeeds) -> SeedsStreamed:
        if self.dies_after is not None and len(self.urls) >= self.dies_after:
            raise RemoteError("peer", "the connection is lost")
        self.messages.append(message)
        self.under_way += bool(message.urls)
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.001)
        self.under_way -= bool(message.urls)
        if message.input:
            self.place = max(self.place, (message.offset, message.lines))
        again = self.failed.intersection(message.urls)
        failed = len(self.failed) if len(self.messages) == 1 else 0
        self.failed -= again
        return SeedsStreamed(*self.place, again=len(again), failed=failed)

    @property
    def urls(self) -> list[str]:
        return [url for message in self.messages for url in message.urls]


def file_of(directory: Path, count: int) -> Path:
    path = directory / "seeds"
    path.write_text("".join(f"http://h{number}.example/\n" for number in range(count)))
    return path


async def test_all_seeds_are_sent_in_order_and_few_at_a_time(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    peer, told = AnsweringPeer(), list[int]()
    path = file_of(tmp_path, 30_000)
    feeder = SeedFeeder(open_seeds(path), peer.send, on_progress=lambda figures: told.append(figures.seeds))
    assert FeedFigures(0, 30_000, 30_000) == await feeder.run()
    assert [f"http://h{number}.example/" for number in range(30_000)] == peer.urls
    assert 1 <= peer.most_under_way <= BATCHES_MAX
    assert sorted(told) == told
    assert [True] == [message.is_last for message in peer.messages if message.is_last]
    assert peer.messages[-1].is_last
    assert (path.stat().st_size, 30_000) == peer.place
    assert 1 == len({message.stream for message in peer.messages})


async def test_a_feed_that_broke_off_goes_on_behind_what_was_answered(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    path, peer = file_of(tmp_path, 30_000), AnsweringPeer()
    peer.dies_after = 15_000
    with pytest.raises(RemoteError):
        await SeedFeeder(open_seeds(path), peer.send).run()
    offset, lines = peer.place
    assert 0 < lines <= len(peer.urls) <= lines + 2 * (BATCHES_MAX + 1) * STREAM_URLS_MAX
    again = AnsweringPeer(offset, lines)
    figures = await SeedFeeder(open_seeds(path), again.send).run()
    assert FeedFigures(lines, 30_000, 30_000 - lines) == figures
    assert f"http://h{lines}.example/" == again.urls[0]
    assert {f"http://h{number}.example/" for number in range(30_000)} == {*peer.urls, *again.urls}
    done = AnsweringPeer(*again.place)
    assert FeedFigures(30_000, 30_000, 0) == await SeedFeeder(open_seeds(path), done.send).run()


async def test_a_file_that_was_read_is_read_once_more_for_seeds_that_failed(
    tmp_path: Path, open_seeds: OpenSeeds
) -> None:
    path = file_of(tmp_path, 9_000)
    peer = AnsweringPeer(path.stat().st_size, 9_000)
    peer.failed = {"http://h7.example/", "http://h8999.example/", "http://linked.example/"}
    assert FeedFigures(9_000, 9_000, 0, again=2) == await SeedFeeder(open_seeds(path), peer.send).run()
    assert [f"http://h{number}.example/" for number in range(9_000)] == peer.urls
    assert {True} == {message.only_failed for message in peer.messages if message.urls}
    assert {(path.stat().st_size, 9_000)} == {(message.offset, message.lines) for message in peer.messages[1:]}
    assert [True] == [message.is_last for message in peer.messages if message.is_last]


async def test_a_file_that_broke_off_goes_on_without_its_first_lines(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    path = file_of(tmp_path, 10)
    peer = AnsweringPeer(len("http://h0.example/\n"), 1)
    peer.failed = {"http://h0.example/"}
    assert FeedFigures(1, 10, 9) == await SeedFeeder(open_seeds(path), peer.send).run()


async def test_a_silent_pipe_keeps_its_stream_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_seeds: OpenSeeds
) -> None:
    monkeypatch.setattr(seed_feeder, "KEEP_OPEN_S", 0.01)
    pipe, peer = tmp_path / "pipe", AnsweringPeer(500, 20)
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, b"http://a.example/\n")
    task = asyncio.create_task(SeedFeeder(open_seeds(pipe), peer.send).run())
    while len(peer.messages) < 5:
        await asyncio.sleep(0.01)
    assert ["http://a.example/"] == peer.urls
    assert {(b"", 0, 0)} == {(message.input, message.offset, message.lines) for message in peer.messages}
    os.close(writer)
    assert FeedFigures(0, 1, 1) == await task


async def test_a_batch_that_must_not_be_crawled_is_not_sent(tmp_path: Path, open_seeds: OpenSeeds) -> None:
    def check(batch: SeedBatch) -> None:
        raise ConfigError(f"not {batch.urls[0]}")

    peer = AnsweringPeer()
    with pytest.raises(ConfigError, match="not http"):
        await SeedFeeder(open_seeds(file_of(tmp_path, 5)), peer.send, check=check).run()
    assert [] == peer.urls
