"""Reads the directory of a peer and the swarm's key, and changes neither.

The journal of a running peer is not searched for damage, as the peer has it open. Beside the journal of a peer that
crashed, SQLite makes the same small file that it makes for the peer.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from kadcrawl.cli.doctor.check_result import CheckResult, note, ok, problem
from kadcrawl.cli.keys import key_to_ask
from kadcrawl.cli.targets import directories
from kadcrawl.errors import ConfigError
from kadcrawl.members.key_file import read_kept_key
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.store.journal import UNREADABLE, faults_in, said
from kadcrawl.store.line_log import MOVE_AWAY
from kadcrawl.store.migration import OPENED
from kadcrawl.store.schema import SCHEMA_VERSION
from kadcrawl.system.clock import steady
from kadcrawl.system.directory_lock import is_running
from kadcrawl.system.file_names import JOURNAL, SWARM_KEY

CHECK_S: Final = 10.0
"""Seconds for the search for damage in all journals. A gigabyte takes some seconds."""
STEPS: Final = 10_000
"""Steps of SQLite between two looks at the time."""


def peers_here(data: Path) -> list[Path]:
    """Return the directories with a journal, at `data` or below it."""
    return [directory for directory in directories(data) if (directory / JOURNAL).exists()]


def directory_findings(data: Path) -> list[CheckResult]:
    """Return the findings about the directory of a peer, or of a crawl."""
    if not data.exists():
        return [ok("directory", f"{data} is not there yet; a crawl makes it")]
    if not data.is_dir():
        return [problem("directory", f"{data} is a file", "choose another directory with --data")]
    peers = peers_here(data)
    if not peers:
        return [ok("directory", f"{data} holds no peer yet")]
    deadline = steady() + CHECK_S
    findings = [finding for peer in peers for finding in _journal_findings(peer, deadline)]
    faults = [finding for finding in findings if finding.advice]
    if not faults:
        running = sum(map(is_running, peers))
        journals = "1 journal is" if len(peers) == 1 else f"{len(peers)} journals are"
        state = f"{running} of the peers running" if running else "no peer running"
        return [ok("directory", f"{data}: {journals} healthy, {state}")]
    return faults


def key_findings(key_file: Path | None, data: Path) -> tuple[list[CheckResult], SwarmKey | None]:
    """Return the findings about the key, and the key, or None."""
    try:
        key = key_to_ask(key_file, data)
    except ConfigError as error:
        sentence, _, advice = str(error).rpartition(": ")
        if sentence.startswith("cannot read"):
            sentence, advice = str(error), "check the name of the file, and that you may read it"
        return [problem("key", sentence, advice)], None
    if key is None:
        return [ok("key", "none is here: crawl and start make a new key, and join needs the key of the swarm")], None
    findings = [ok("key", f"{key.description} is good; its public name is {key.name}")]
    for directory in directories(data):
        with suppress(ConfigError):  # That of --key-file counts.
            if (directory / SWARM_KEY).exists() and (kept := read_kept_key(directory / SWARM_KEY)) != key:
                findings.append(
                    problem(
                        "key",
                        f"{directory} is of a swarm with another key ({kept.name})",
                        "give the key of that swarm, or choose another directory with --data",
                    )
                )
    return findings, key


def journal_time(data: Path) -> float | None:
    """Return the time of the last commit below this directory, in seconds since 1970, or None without any."""
    times = []
    for directory in peers_here(data):
        with suppress(*UNREADABLE, ValueError), closing(_open(directory)) as journal:
            row = journal.execute("SELECT value FROM meta WHERE name='clock'").fetchone()
            if row is not None:
                times.append(float(row[0]))
    return max(times, default=None)


def _journal_findings(directory: Path, deadline: float) -> list[CheckResult]:
    path = directory / JOURNAL
    try:
        with closing(_open(directory)) as journal:
            (version,) = journal.execute("PRAGMA user_version").fetchone()
            if version not in OPENED:
                return [
                    problem(
                        "directory",
                        f"{path} is of another version of kadcrawl (journal {version}, not {SCHEMA_VERSION})",
                        "use that version, or another directory with --data",
                    )
                ]
            if is_running(directory):
                return [ok("directory", f"{directory} has a running peer")]
            journal.set_progress_handler(lambda: steady() > deadline, STEPS)
            faults = faults_in(str(text) for (text,) in journal.execute("PRAGMA quick_check(1)"))
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            return [
                note(
                    "directory",
                    f"{path} is too large to be searched for damage within {CHECK_S:g} s",
                    f"sqlite3 {path} 'PRAGMA quick_check' searches all of it, while no peer runs",
                )
            ]
        return [problem("directory", f"{path} cannot be read: {said(error)}", "check that you may read it")]
    except UNREADABLE as error:
        return [problem("directory", f"{path} is damaged: {said(error)}", MOVE_AWAY)]
    if faults:
        return [problem("directory", f"{path} is damaged: {faults[0]}", MOVE_AWAY)]
    return [ok("directory", f"{path} is healthy")]


def _open(directory: Path) -> sqlite3.Connection:
    path = directory / JOURNAL
    # A journal that was closed well can be read without the files that SQLite needs for a log of changes.
    is_closed = not path.with_name(f"{JOURNAL}-wal").exists() and not is_running(directory)
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_closed else ''}", uri=True)
