"""The judge of a soak finds processes that grow, and no others."""

import os
from pathlib import Path

from scripts.chaos.usage import Usage, growths, usage
from scripts.soak import WAL_MB_MAX, WARM_S, grown


def looks(pid: int, rss_mb: list[float], *, wal_mb: float = 1.0, files: int = 50) -> list[Usage]:
    return [
        Usage(10.0 * at, f"peer-{pid}", pid, WARM_S + 10.0 * at, rss, files, 9, wal_mb, 2.0)
        for at, rss in enumerate(rss_mb)
    ]


def test_a_process_that_grows_is_named_and_a_steady_one_is_not() -> None:
    assert [] == [*grown(looks(1, [80.0] * 30))]
    assert ["peer-2 (process 2) grew by 60 rss_mb"] == [*grown(looks(2, [float(mb) for mb in range(80, 170)]))]


def test_the_begin_of_a_process_does_not_count() -> None:
    cold = [Usage(at, "peer-1", 1, at, 10.0 * at, 50, 9, 1.0, 2.0) for at in range(int(WARM_S))]
    assert {} == growths(cold, WARM_S)
    assert [] == [*grown([*cold, *looks(1, [450.0] * 9)])]


def test_a_large_wal_is_named() -> None:
    assert [f"a WAL had {WAL_MB_MAX + 1:g} MB"] == [*grown(looks(1, [80.0], wal_mb=WAL_MB_MAX + 1))]


def test_the_usage_of_a_process_is_read_until_its_end(tmp_path: Path) -> None:
    (tmp_path / "peer.sqlite").write_bytes(bytes(2_000_000))
    found = usage(3.0, "me", os.getpid(), 2.0, tmp_path)
    assert found is not None
    assert (0.0, 2.0) == (found.wal_mb, found.journal_mb)
    assert found.rss_mb > 5
    assert usage(3.0, "me", 2**22 + 1, 2.0, tmp_path) is None
