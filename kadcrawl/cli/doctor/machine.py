"""The meaning of facts about this machine for a peer: open files, memory, disk, clock. The facts are arguments."""

from dataclasses import dataclass
from typing import Final

from kadcrawl.cli.doctor.check_result import CheckResult, note, ok, problem
from kadcrawl.settings.limits import Limits

FILES_OF_A_PEER: Final = 300
"""Open files of a peer besides its fetches and its connections to others: journal, WARC, logs, connections in their
handshakes (100 at most), name look-ups, and some to spare."""
FILES_PER_OTHER_PEER: Final = 2
"""Connections between two peers: each keeps the connection that it dialed."""
OTHER_PEERS_MAX: Final = 4_000
"""Connections that a peer accepts (link/server.py)."""
OTHER_PEERS_WANTED: Final = 100
"""Other peers for which the files should do. Most swarms are smaller."""
RAISE_FILES: Final = "raise the hard limit: nofile in /etc/security/limits.conf, or LimitNOFILE= in a systemd unit"
MEMORY_PER_PEER_BYTES: Final = 200 * 1024 * 1024
"""Memory of a peer in a crawl of ordinary pages. A peer takes 70 MB after its start, and grows with sites and links."""
SYNC_SLOW_S: Final = 0.1
"""Seconds of one sync from which the disk slows a peer down. A page is done only when a sync has ended."""
CLOCK_NOTE_S: Final = 30.0
CLOCK_PROBLEM_S: Final = 86_400.0
"""Seconds that a clock may be wrong before certificates of sites seem to be out of date."""
YEAR_MIN_S: Final = 1_735_689_600.0
"""The begin of 2025, in seconds since 1970. This release is younger, so an earlier clock is wrong."""
NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs", "nfs", "nfs4", "smb3"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """The facts about the disk below --data."""

    place: str
    """The directory that was tried: --data, or else the nearest directory above it."""
    file_system: str | None
    free_bytes: int
    sync_s: float | None = None
    """Seconds to write a few bytes and sync them, or None if that failed."""
    write_error: str | None = None
    lock_error: str | None = None
    """The error of a lock on a file, or None if files can be locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockFacts:
    """The facts about the wall clock."""

    now_s: float
    synchronized: bool | None
    """True if the system keeps its clock by a time server, None if it does not tell."""
    site_ahead_s: float | None = None
    """Seconds by which the clock of a given URL's site is ahead of this clock."""
    journal_ahead_s: float | None = None
    """Seconds by which the last commit of the directory is in the future."""


def files_finding(soft: int, hard: int, fetches: int = Limits().fetches_max) -> CheckResult:
    """Return whether a process may open enough files. A limit of -1 is none."""
    if hard < 0:
        return ok("open files", "no limit")
    others = min(OTHER_PEERS_MAX, (hard - FILES_OF_A_PEER - fetches) // FILES_PER_OTHER_PEER)
    said = f"{hard} for each process (soft limit {soft}, which kadcrawl raises)"
    if others < 1:
        return problem("open files", f"{said}: too few for a peer", RAISE_FILES)
    said += f": enough for a swarm of about {others + 1} peers"
    if others < OTHER_PEERS_WANTED:
        return note("open files", said, f"for a larger swarm, {RAISE_FILES}")
    return ok("open files", said)


def memory_finding(available_bytes: int | None) -> CheckResult:
    """Return whether there is memory for a peer. None is a system that does not tell."""
    if available_bytes is None:
        return note(
            "memory", "this system does not tell how much is free", f"see to {_mib(MEMORY_PER_PEER_BYTES)} a peer"
        )
    peers = available_bytes // MEMORY_PER_PEER_BYTES
    if not peers:
        return note(
            "memory",
            f"{_mib(available_bytes)} are free, and a peer takes about {_mib(MEMORY_PER_PEER_BYTES)}",
            "end other programs, or give the machine more memory",
        )
    return ok("memory", f"{_mib(available_bytes)} are free: enough for about {peers} peer{'s' if peers > 1 else ''}")


def disk_findings(facts: DiskFacts, reserve_bytes: int = Limits().disk_reserve_bytes) -> list[CheckResult]:
    """Return the findings about the disk."""
    findings = []
    if facts.free_bytes < reserve_bytes:
        findings.append(
            problem(
                "disk",
                f"{_mib(facts.free_bytes)} are free in {facts.place}, and below {_mib(reserve_bytes)} a peer fetches "
                "nothing",
                "make room, or choose a directory on another disk with --data",
            )
        )
    else:
        findings.append(ok("disk", f"{_mib(facts.free_bytes)} are free in {facts.place}"))
    if facts.write_error is not None:
        findings.append(
            problem(
                "disk",
                f"a file in {facts.place} cannot be written and synced: {facts.write_error}",
                "choose another directory with --data, or change the owner of this one",
            )
        )
    elif facts.sync_s is not None:
        said = f"a write and its sync take {facts.sync_s * 1000:.1f} ms"
        if facts.sync_s > SYNC_SLOW_S:
            findings.append(note("disk", f"{said}, and each page waits for one", "choose a faster disk with --data"))
        else:
            findings.append(ok("disk", said))
    if facts.lock_error is not None:
        findings.append(
            problem(
                "disk",
                f"files in {facts.place} cannot be locked: {facts.lock_error}",
                "choose a directory on a local disk with --data",
            )
        )
    elif facts.file_system in NETWORK_FILE_SYSTEMS:
        findings.append(
            note(
                "disk",
                f"{facts.place} is on a network mount ({facts.file_system}), where locks and SQLite are not safe",
                "choose a directory on a local disk with --data",
            )
        )
    return findings


def clock_finding(facts: ClockFacts) -> CheckResult:
    """Return whether the clock is right.

    A wrong clock lets no peer out of a swarm. It gives pages wrong dates, and revisits wrong times.
    """
    set_it = "set the clock, best by a time server: timedatectl set-ntp true"
    if facts.now_s < YEAR_MIN_S:
        return problem("clock", "the clock is years behind", set_it)
    if facts.site_ahead_s is not None and abs(facts.site_ahead_s) > CLOCK_NOTE_S:
        where = "behind" if facts.site_ahead_s > 0 else "ahead of"
        said = f"this clock is {abs(facts.site_ahead_s):.0f} s {where} the clock of the site"
        make = problem if abs(facts.site_ahead_s) > CLOCK_PROBLEM_S else note
        return make("clock", said, set_it)
    if facts.journal_ahead_s is not None and facts.journal_ahead_s > CLOCK_NOTE_S:
        said = f"the last run of the peer ended {facts.journal_ahead_s:.0f} s in the future: the clock was put back"
        return note("clock", said, f"{set_it}; the peer moves its own times back by as much")
    compared = "" if facts.site_ahead_s is None else "; it agrees with the site"
    if facts.synchronized is False and facts.site_ahead_s is None:
        said = "no time server keeps this clock, so pages may get wrong dates"
        return note("clock", said, f"{set_it}; or give a URL, whose site tells its time")
    if facts.synchronized is None:
        said = "this system does not tell whether a time server keeps it"
    else:
        said = "a time server keeps it" if facts.synchronized else "no time server keeps it"
    return ok("clock", f"{said}{compared}")


def _mib(count: int) -> str:
    return f"{count / 1024**3:.1f} GiB" if count >= 1024**3 else f"{count // 1024**2} MiB"
