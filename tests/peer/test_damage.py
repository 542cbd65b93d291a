"""Test the error and the advice for a directory whose journal opens but contains wrong values."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl import Config, Job, Peer, StorageError
from kadcrawl.members.swarm_key import SwarmKey


async def started(data: Path, key: SwarmKey | None) -> None:
    async with Peer(Config(data=data, port=0, swarm_key=key), Job(max_pages=3)) as peer:
        await peer.begin()
        await peer.leave()


@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        ("port", None, (b"x", b"\xff", b"9" * 5000)),
        ("granted", None, (b"1.5", b"\0")),
        ("grants", None, (b"\xc1", b"\x90", b"\x81\x01\x01", b"\x81\xa1x\xa1y")),
        ("grant_epoch", None, (b"1.5", b"soon")),
        ("grant_epochs", None, (b"\xc1", b"\x81\xa1x\xa1y")),
        ("bytes_granted", None, (b"1.5", b"\0")),
        ("bytes_epoch", None, (b"\0",)),
        ("bytes_epochs", None, (b"\x90",)),
        ("bytes_grants", None, (b"\xc1", b"\x90")),
        ("crawl_ms", None, (b"soon",)),
        ("warc", None, (b"{}", b'["a"]', b"\xff")),
        ("job", None, (b"", b"[]", b'{"max_pages":"three"}')),
        ("node_id", None, (b"", b"x" * 19, b"x" * 21)),
        ("run", SwarmKey(b"k" * 32), (b"soon", b"-1", b"%d" % 2**32)),
        ("clock", None, (b"noon",)),
    ],
)
async def test_a_value_nobody_wrote_is_damage(
    tmp_path: Path, name: str, key: SwarmKey | None, values: tuple[bytes, ...]
) -> None:
    data = tmp_path / "one"
    await started(data, key)
    for value in values:
        with closing(sqlite3.connect(data / "peer.sqlite", isolation_level=None)) as journal:
            journal.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
        with pytest.raises(StorageError, match=r"is damaged: its \w+ cannot be read; move this directory away"):
            await started(data, key)
    with closing(sqlite3.connect(data / "peer.sqlite", isolation_level=None)) as journal:
        journal.execute("DELETE FROM meta WHERE name=?", (name,))
    await started(data, key)
