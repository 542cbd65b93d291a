"""A disk without room, one that may not be written to, and a journal that is closed are told apart."""

import errno
import sqlite3
from pathlib import Path

import pytest

from kadcrawl.errors import StorageError
from kadcrawl.store.disk_faults import LOOK_AT_DISK, MAKE_ROOM, SQLITE_FULL, advice, is_disk_full
from tests.support.stores import opened


def test_only_a_full_disk_asks_for_room_alone() -> None:
    assert sqlite3.SQLITE_FULL == SQLITE_FULL
    for number in (errno.ENOSPC, errno.EDQUOT):
        assert (True, MAKE_ROOM) == (is_disk_full(OSError(number, "full")), advice(OSError(number, "full")))
    for error in (OSError(errno.EROFS, "Read-only file system"), OSError(errno.EIO, "I/O error"), sqlite3.Error("x")):
        assert (False, LOOK_AT_DISK) == (is_disk_full(error), advice(error))


async def test_a_disk_that_may_not_be_written_to_is_not_called_full(tmp_path: Path) -> None:
    store = opened(tmp_path)

    def read_only() -> list[int]:
        raise OSError(errno.EROFS, "Read-only file system")

    store.journal.before_commit(read_only)
    store.meta.set("name", b"value")
    with pytest.raises(StorageError, match="Read-only file system; look whether the disk is sound and may be written"):
        await store.journal.commit()
    store.close()


async def test_a_directory_that_was_moved_is_said_to_be_moved(tmp_path: Path) -> None:
    (before := tmp_path / "before").mkdir()
    store = opened(before)
    store.journal.write_page_line(b'{"url":"http://a/"}\n')
    await store.journal.commit()
    store.journal.write_page_line(b'{"url":"http://b/"}\n')
    before.rename(after := tmp_path / "after")
    with pytest.raises(StorageError) as failed:
        await store.journal.commit()
    assert f"{before} was moved or removed while its peer ran: start again with --data where it is now" == str(
        failed.value
    )
    store.close()
    assert not before.exists()
    again = opened(after)
    assert [b'{"url":"http://a/"}\n'] == again.journal.last_page_lines()
    again.close()


def test_a_peer_that_is_used_after_its_end_is_told_so(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.close()
    for _ in range(2):
        with pytest.raises(StorageError, match="has ended: enter another Peer"):
            store.meta.set("name", b"value")
    other = opened(tmp_path)
    other.close()
    with pytest.raises(StorageError, match="has ended: enter another Peer"):
        other.journal.row((bytes,), "SELECT value FROM meta")
