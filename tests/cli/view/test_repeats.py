"""Test that visits of a recrawl with fingerprints are no repeats, and that lines too near for it are."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import msgspec
import pytest

from fuzz.data_directories import JOB, DataPeer, make
from kadcrawl.cli.data_check.data_check import check_data
from kadcrawl.cli.view.repeats import recurring_visits
from kadcrawl.cli.view.summary import PageLogs
from kadcrawl.crawl.build import period_of
from kadcrawl.keys import ID_BYTES, Key
from kadcrawl.settings.job import Job
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter

DAY_S = 86_400.0
RECURRING = replace(JOB, history="bloom", recrawl_after_s=10.0, grain_s=2.0)
"""A job whose visits are at least 8 s apart."""
JOBS = [
    RECURRING,
    Job(history="bloom", recrawl_after_s=20.0, grain_s=5.0),
    Job(history="bloom", recrawl_after_s=11.0, grain_s=2.0),
    Job(history="bloom", recrawl_after_s=7 * DAY_S),
    Job(history="bloom", recrawl_after_s=90 * DAY_S, calendar_grain="month"),
    Job(history="bloom", recrawl_after_s=15 * DAY_S, calendar_grain="week"),
    Job(history="bloom", recrawl_after_s=2 * DAY_S, calendar_grain="hour"),
]


@pytest.mark.parametrize("job", JOBS)
def test_no_visit_that_is_due_counts_as_a_repeat(job: Job) -> None:
    period, visits, random = period_of(job), recurring_visits(job), Random(3)
    assert period is not None
    assert visits is not None
    for number in range(200):
        at = random.uniform(1.7e9, 2.2e9)
        if number % 2:  # The last moments of an epoch and its first: the shortest and the longest life.
            at = period.begin_s(period.epoch(at)) + random.uniform(-0.01, 0.01)
        known = ExpiringFilter(period)
        known.add(Key(bytes(ID_BYTES)), at)
        due = period.begin_s(period.epoch(at) + period.epochs)
        assert not known.contains(Key(bytes(ID_BYTES)), due)
        times = [int(1000 * each) for each in (at, due)]
        assert 0 == visits.repeats((0, each) for each in times)
        # A line that is nearer by an epoch is a repeat, wherever in their epochs the two lines are.
        epochs = range(period.epoch(at), period.epoch(at) + 14)
        longest_s = max(period.begin_s(epoch + 1) - period.begin_s(epoch) for epoch in epochs)
        assert 1 == visits.repeats((0, each) for each in (times[0], int(1000 * (due - 1.2 * longest_s))))


@pytest.mark.parametrize("job", [Job(), Job(recrawl_after_s=9.0), Job(history="bloom")])
def test_other_jobs_number_their_visits_or_have_one(job: Job) -> None:
    assert recurring_visits(job) is None


def dated(line: bytes, seconds: float) -> bytes:
    """Return a page line of another peer whose request began so much later."""
    page = json.loads(line)
    at = datetime.fromisoformat(page["fetched_at"]).timestamp() + seconds
    page["fetched_at"] = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    page |= {"records": 0, "warc": None, "offset": None}
    return json.dumps(page).encode() + b"\n"


def recrawled(directory: Path, job: Job, *seconds: float) -> None:
    """Make a crawl whose second peer has further lines of a URL of the first, so many seconds after its first line."""
    make(directory, is_finished=True)
    for name, number in (("peer-1", 0), ("peer-2", 1)):
        with closing(DataPeer(directory / name, number)) as peer:
            peer.store.meta.set("job", msgspec.json.encode(job))
            peer.commit()
    line = (directory / "peer-1" / "pages.jsonl").read_bytes().splitlines(keepends=True)[0]
    with (directory / "peer-2" / "pages.jsonl").open("ab") as log:
        log.writelines(dated(line, each) for each in seconds)


@pytest.mark.parametrize(
    ("job", "seconds", "repeats"),
    [
        (RECURRING, (8.0, 16.5, 30.0), 0),
        (RECURRING, (9.0, 0.5, 9.4, 18.0), 2),
        (RECURRING, (7.9,), 1),
        (replace(JOB, history="bloom"), (8.0, 16.0), 2),
        (JOB, (8.0,), 1),
    ],
)
def test_the_summary_and_the_check_count_alike(
    tmp_path: Path, job: Job, seconds: tuple[float, ...], repeats: int
) -> None:
    recrawled(tmp_path, job, *seconds)
    assert repeats == PageLogs([tmp_path / "peer-1", tmp_path / "peer-2"], job).repeats
    found = [(each.kind, each.count) for each in check_data(tmp_path, lambda path, part: None).findings]
    assert ([("twice", repeats)] if repeats else []) == [each for each in found if each[0] == "twice"]
    done = subprocess.run(
        [sys.executable, "-m", "kadcrawl", "summary", "--json", "--data", str(tmp_path)], capture_output=True, text=True
    )
    assert (0, repeats) == (done.returncode, json.loads(done.stdout)["duplicates"])


def test_lines_without_a_time_are_left_out(tmp_path: Path) -> None:
    lines = [
        '{"url": "http://a.example/"}',
        *['{"url": "http://a.example/", "fetched_at": "2026-01-02T03:04:05.000Z"}'] * 2,
    ]
    (tmp_path / "pages.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert 1 == PageLogs([tmp_path], RECURRING).repeats
