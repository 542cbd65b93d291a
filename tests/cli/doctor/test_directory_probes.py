"""The directory of a peer and its key are read, never changed, and never shown."""

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kadcrawl.cli.doctor import directory_probes
from kadcrawl.cli.doctor.check_result import CheckOutcome
from kadcrawl.cli.doctor.directory_probes import (
    directory_findings,
    journal_time,
    key_findings,
    peers_here,
)
from kadcrawl.members.key_file import write_secret
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.store.store import Store
from kadcrawl.system.directory_lock import is_running
from kadcrawl.system.file_names import JOURNAL, LOCK, PEER_KEY, SWARM_KEY


@pytest.fixture
async def peer_data(tmp_path: Path) -> Path:
    """Return the directory of a peer that has run."""
    directory = tmp_path / "peer"
    directory.mkdir()
    store = Store(directory, 0.0)
    store.saved_time.save(1_800_000_000.5)
    await store.journal.commit()
    store.close()
    (directory / LOCK).touch()
    return directory


def files_in(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    (finding,) = directory_findings(tmp_path / "none")
    assert finding.outcome is CheckOutcome.OK
    assert not (tmp_path / "none").exists()


def test_an_empty_directory_holds_no_peer_and_a_file_is_none(tmp_path: Path) -> None:
    assert "holds no peer" in directory_findings(tmp_path)[0].said
    (tmp_path / "file").touch()
    assert CheckOutcome.PROBLEM is directory_findings(tmp_path / "file")[0].outcome


def test_a_healthy_journal_is_told_and_not_changed(peer_data: Path) -> None:
    before = files_in(peer_data)
    (finding,) = directory_findings(peer_data)
    assert (CheckOutcome.OK, f"{peer_data}: 1 journal is healthy, no peer running") == (finding.outcome, finding.said)
    assert before == files_in(peer_data)
    assert 1_800_000_000.5 == journal_time(peer_data)


def test_the_peers_of_a_crawl_are_looked_at_together(peer_data: Path) -> None:
    crawl = peer_data.parent
    peer_data.rename(crawl / "peer-1")
    (finding,) = directory_findings(crawl)
    assert f"{crawl}: 1 journal is healthy, no peer running" == finding.said
    assert [crawl / "peer-1"] == peers_here(crawl)


def test_a_running_peer_is_noticed_and_keeps_its_lock(peer_data: Path) -> None:
    assert not is_running(peer_data)
    with (peer_data / LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_running(peer_data)
        assert "1 of the peers running" in directory_findings(peer_data)[0].said
        other = os.open(peer_data / LOCK, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
    assert not is_running(peer_data.parent / "none")


def test_a_damaged_journal_is_a_problem_with_advice(peer_data: Path) -> None:
    size = (peer_data / JOURNAL).stat().st_size
    with (peer_data / JOURNAL).open("r+b") as file:
        file.seek(1024)
        file.write(os.urandom(size - 1024))
    (finding,) = directory_findings(peer_data)
    assert finding.outcome is CheckOutcome.PROBLEM
    assert f"{peer_data / JOURNAL} is damaged" in finding.said
    assert "move this directory away and go on without it" in finding.advice


def test_a_file_that_is_no_journal_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_bytes(b"nonsense" * 1000)
    (finding,) = directory_findings(tmp_path)
    assert finding.outcome is CheckOutcome.PROBLEM
    assert journal_time(tmp_path) is None


def test_a_journal_of_another_version_is_a_problem(peer_data: Path) -> None:
    with closing(sqlite3.connect(peer_data / JOURNAL)) as journal:
        journal.execute("PRAGMA user_version=99")
        journal.commit()
    (finding,) = directory_findings(peer_data)
    assert finding.outcome is CheckOutcome.PROBLEM
    assert "another version of kadcrawl (journal 99, not " in finding.said


def test_a_journal_that_is_too_large_for_the_time_is_a_note(peer_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_probes, "CHECK_S", -1.0)
    monkeypatch.setattr(directory_probes, "STEPS", 1)
    (finding,) = directory_findings(peer_data)
    assert finding.outcome is CheckOutcome.NOTE
    assert "too large" in finding.said


@pytest.fixture(autouse=True)
def _no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KADCRAWL_KEY", raising=False)


def key_file(path: Path, key: SwarmKey, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_secret(path, f"{key.text}\n".encode())
    path.chmod(mode)
    return path


def test_a_good_key_is_told_by_its_public_name_only(tmp_path: Path) -> None:
    key = SwarmKey.generate()
    findings, read = key_findings(key_file(tmp_path / "key", key), tmp_path / "none")
    assert [CheckOutcome.OK] == [finding.outcome for finding in findings]
    assert key == read
    assert key.name in findings[0].said
    assert key.text not in findings[0].said


def test_without_a_key_all_is_well_so_far(tmp_path: Path) -> None:
    ((finding,), key) = key_findings(None, tmp_path)
    assert (CheckOutcome.OK, None) == (finding.outcome, key)


@pytest.mark.parametrize(
    ("text", "mode", "says", "advice"),
    [
        ("0" * 64, 0o644, "others can read", "chmod 600"),
        ("0" * 63, 0o600, "64 hexadecimal digits", "kadcrawl keygen"),
        (None, 0, "No such file", "check the name"),
    ],
)
def test_a_bad_key_file_is_a_problem_that_says_what_to_do(
    tmp_path: Path, text: str | None, mode: int, says: str, advice: str
) -> None:
    path = tmp_path / "key"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    ((finding,), key) = key_findings(path, tmp_path / "none")
    assert (CheckOutcome.PROBLEM, None) == (finding.outcome, key)
    assert says in finding.said
    assert advice in finding.advice
    assert "0" * 60 not in finding.said + finding.advice


def test_a_key_of_another_swarm_than_the_directory_is_a_problem(tmp_path: Path) -> None:
    kept = SwarmKey.generate()
    key_file(tmp_path / "data" / SWARM_KEY, kept)
    given = key_file(tmp_path / "key", SwarmKey.generate())
    findings, _ = key_findings(given, tmp_path / "data")
    assert [CheckOutcome.OK, CheckOutcome.PROBLEM] == [finding.outcome for finding in findings]
    assert f"another key ({kept.name})" in findings[1].said
    assert [CheckOutcome.OK] == [finding.outcome for finding in key_findings(None, tmp_path / "data")[0]]


def test_a_directory_whose_key_is_gone_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / PEER_KEY).touch()
    ((finding,), _) = key_findings(None, tmp_path)
    assert finding.outcome is CheckOutcome.PROBLEM
    assert "is of a peer whose swarm has a key" in finding.said
    assert "--key-file" in finding.advice
