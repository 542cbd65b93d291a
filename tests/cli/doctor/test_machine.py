"""Facts about a machine become outcomes at their limits, each with advice unless all is well."""

from dataclasses import replace

import pytest

from kadcrawl.cli.doctor.check_result import CheckOutcome, CheckResult, conclusion, note, ok, problem
from kadcrawl.cli.doctor.machine import (
    CLOCK_NOTE_S,
    CLOCK_PROBLEM_S,
    FILES_OF_A_PEER,
    MEMORY_PER_PEER_BYTES,
    NETWORK_FILE_SYSTEMS,
    SYNC_SLOW_S,
    YEAR_MIN_S,
    ClockFacts,
    DiskFacts,
    clock_finding,
    disk_findings,
    files_finding,
    memory_finding,
)
from kadcrawl.link.server import SERVER_CONNECTIONS_MAX
from kadcrawl.settings.limits import Limits

NEED = FILES_OF_A_PEER + Limits().fetches_max
RESERVE = Limits().disk_reserve_bytes
GOOD_DISK = DiskFacts(place="/data", file_system="ext4", free_bytes=10**12, sync_s=0.004)
GOOD_CLOCK = ClockFacts(now_s=YEAR_MIN_S + 1e8, synchronized=True)


def is_told(finding: CheckResult) -> None:
    assert finding.said
    assert bool(finding.advice) is (finding.outcome is not CheckOutcome.OK)


@pytest.mark.parametrize(
    ("hard", "outcome", "says"),
    [
        (NEED + 1, CheckOutcome.PROBLEM, "too few for a peer"),
        (NEED + 2, CheckOutcome.NOTE, "a swarm of about 2 peers"),
        (NEED + 198, CheckOutcome.NOTE, "a swarm of about 100 peers"),
        (NEED + 200, CheckOutcome.OK, "a swarm of about 101 peers"),
        (10**6, CheckOutcome.OK, f"a swarm of about {SERVER_CONNECTIONS_MAX + 1} peers"),
        (-1, CheckOutcome.OK, "no limit"),
    ],
)
def test_the_limit_on_open_files_tells_how_many_peers_it_allows(hard: int, outcome: CheckOutcome, says: str) -> None:
    finding = files_finding(1024, hard)
    assert outcome is finding.outcome
    assert says in finding.said
    is_told(finding)


@pytest.mark.parametrize(
    ("available", "outcome", "says"),
    [
        (MEMORY_PER_PEER_BYTES - 1, CheckOutcome.NOTE, "199 MiB are free"),
        (MEMORY_PER_PEER_BYTES, CheckOutcome.OK, "about 1 peer"),
        (8 * 1024**3, CheckOutcome.OK, "8.0 GiB are free: enough for about 40 peers"),
        (None, CheckOutcome.NOTE, "does not tell"),
    ],
)
def test_free_memory_tells_how_many_peers_it_is_for(available: int | None, outcome: CheckOutcome, says: str) -> None:
    finding = memory_finding(available)
    assert outcome is finding.outcome
    assert says in finding.said
    is_told(finding)


def test_a_good_disk_has_room_and_syncs_quickly() -> None:
    findings = disk_findings(GOOD_DISK)
    assert [CheckOutcome.OK, CheckOutcome.OK] == [finding.outcome for finding in findings]
    assert "4.0 ms" in findings[1].said


@pytest.mark.parametrize(
    ("facts", "outcome", "says"),
    [
        (
            {"free_bytes": RESERVE - 1},
            CheckOutcome.PROBLEM,
            "63 MiB are free in /data, and below 64 MiB a peer fetches nothing",
        ),
        ({"sync_s": SYNC_SLOW_S * 1.01}, CheckOutcome.NOTE, "101.0 ms"),
        ({"sync_s": None, "write_error": "Permission denied"}, CheckOutcome.PROBLEM, "Permission denied"),
        ({"lock_error": "No locks available"}, CheckOutcome.PROBLEM, "cannot be locked: No locks available"),
        *[
            ({"file_system": name}, CheckOutcome.NOTE, f"network mount ({name})")
            for name in sorted(NETWORK_FILE_SYSTEMS)
        ],
    ],
)
def test_a_disk_that_is_full_slow_foreign_or_far_is_told(
    facts: dict[str, object], outcome: CheckOutcome, says: str
) -> None:
    findings = disk_findings(replace(GOOD_DISK, **facts))  # type: ignore[arg-type]
    (bad,) = [finding for finding in findings if finding.outcome is not CheckOutcome.OK]
    assert outcome is bad.outcome
    assert says in bad.said
    for finding in findings:
        is_told(finding)


def test_a_disk_at_the_reserve_is_good() -> None:
    assert CheckOutcome.OK is disk_findings(replace(GOOD_DISK, free_bytes=RESERVE))[0].outcome


@pytest.mark.parametrize(
    ("facts", "outcome", "says"),
    [
        ({}, CheckOutcome.OK, "a time server keeps it"),
        ({"synchronized": None}, CheckOutcome.OK, "does not tell"),
        ({"synchronized": False}, CheckOutcome.NOTE, "no time server keeps this clock"),
        ({"synchronized": False, "site_ahead_s": 0.0}, CheckOutcome.OK, "agrees with the site"),
        ({"synchronized": False, "site_ahead_s": 0.0}, CheckOutcome.OK, "no time server keeps it; it agrees with"),
        ({"site_ahead_s": CLOCK_NOTE_S}, CheckOutcome.OK, "agrees with the site"),
        ({"site_ahead_s": CLOCK_NOTE_S + 1}, CheckOutcome.NOTE, "31 s behind the clock of the site"),
        ({"site_ahead_s": -CLOCK_NOTE_S - 1}, CheckOutcome.NOTE, "31 s ahead of the clock of the site"),
        ({"site_ahead_s": CLOCK_PROBLEM_S + 1}, CheckOutcome.PROBLEM, "86401 s behind"),
        ({"journal_ahead_s": CLOCK_NOTE_S}, CheckOutcome.OK, "keeps it"),
        ({"journal_ahead_s": CLOCK_NOTE_S + 1}, CheckOutcome.NOTE, "the clock was put back"),
        ({"now_s": YEAR_MIN_S - 1}, CheckOutcome.PROBLEM, "years behind"),
    ],
)
def test_a_wrong_clock_is_told(facts: dict[str, object], outcome: CheckOutcome, says: str) -> None:
    finding = clock_finding(replace(GOOD_CLOCK, **facts))  # type: ignore[arg-type]
    assert outcome is finding.outcome
    assert says in finding.said
    is_told(finding)


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([ok("a", "b")], "all is well"),
        ([note("a", "b", "c")], "1 note"),
        ([problem("a", "b", "c"), ok("a", "b"), problem("a", "b", "c")], "2 problems"),
        ([problem("a", "b", "c"), note("a", "b", "c"), note("a", "b", "c")], "1 problem, 2 notes"),
    ],
)
def test_the_conclusion_counts_problems_and_notes(findings: list[CheckResult], said: str) -> None:
    assert said == conclusion(findings)
