"""Campaigns turn exceptions into outcomes, sum them up, and report them by the command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sim import campaign
from sim.__main__ import main
from sim.campaign import Task, TooLong, Totals, attempt, quantile, tasks, trials
from sim.plan import Event, Kind, Plan
from sim.trial import Size, TrialOutcome, run

SMALL = Size(pages=30, sites=4)
SMALL_OPTIONS = ["--peers", "3", "--pages", "30", "--sites", "4", "--delay", "0.2"]
FIELDS = [
    "seeds",
    "virtual_hours",
    "messages",
    "kills",
    "partitions",
    "urls",
    "lent",
    "lost",
    "duplicates",
    "duplicate_ratio",
    "cut_short",
    "politeness_violations",
    "robots_violations",
    "false_terminations",
    "missed_terminations",
    "owner_disagreements",
    "repair_seconds",
    "failing_seeds",
]


def outcome(seed: int, violations: dict[str, list[str]] | None = None, repair_s: float | None = 2.0) -> TrialOutcome:
    return TrialOutcome(
        plan=Plan(seed, 3, ()),
        violations=violations or {},
        trace="",
        virtual_s=1800.0,
        wall_s=1.0,
        messages=10,
        kills=1,
        partitions=2,
        urls=100,
        fetches=120,
        lent=20,
        duplicates=1,
        cut_short=3,
        parted=3,
        repair_s=repair_s,
        met={"kill_during_sync": 1},
    )


def test_a_calm_world_is_crawled_to_its_end_and_judged_clean() -> None:
    [calm] = tasks([5], 3, SMALL, delay_s=0.2, faults=False)
    found = run(calm.plan, calm.size)
    assert {} == found.violations
    assert found.urls > 20
    assert found.fetches >= found.urls
    assert found.virtual_s < 60


def test_a_campaign_may_say_how_many_copies_its_jobs_keep() -> None:
    assert [5, 5, 5] == [one.plan.copies for one in tasks([1, 2, 3], 8, SMALL, copies=5)]


def test_outcomes_travel_between_processes() -> None:
    todo = [one._replace(plan=one.plan.without(frozenset(range(99)))) for one in tasks([1, 2], 2, SMALL)]
    seeds = sorted(one.plan.seed for one in trials(todo, 2))
    assert [1, 2] == seeds


@pytest.mark.parametrize("error", [KeyError("gone"), TooLong("not over after 1 s")])
def test_a_trial_that_breaks_is_an_outcome_with_its_reason(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> TrialOutcome:
        raise error

    monkeypatch.setattr(campaign, "run", broken)
    found = attempt(Task(Plan(9, 3, ())))
    assert ["no_errors"] == list(found.violations)
    assert type(error).__name__ in found.violations["no_errors"][0]


def test_a_trial_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object, **__: object) -> TrialOutcome:
        while True:
            pass

    monkeypatch.setattr(campaign, "run", endless)
    assert "not over after 1 s" in attempt(Task(Plan(9, 3, ()), wall_most_s=1)).violations["no_errors"][0]


def test_totals_name_what_the_record_asks_for() -> None:
    totals = Totals()
    totals.add(outcome(1))
    totals.add(outcome(4, {"polite": ["a", "b"], "nothing_lost": ["c"]}, repair_s=None))
    report = totals.report()
    assert FIELDS == list(report)[: len(FIELDS)]
    expected = {"seeds": 2, "virtual_hours": 1.0, "messages": 20, "kills": 2, "partitions": 4, "urls": 200, "lost": 1}
    assert expected == {name: report[name] for name in expected}
    assert (2, 0.01, 6) == (report["duplicates"], report["duplicate_ratio"], report["cut_short"])
    assert (2, 0, [4]) == (report["politeness_violations"], report["robots_violations"], report["failing_seeds"])
    assert {"p50": 2.0, "p99": 2.0} == report["repair_seconds"]
    assert 2 == report["sometimes"]["kill_during_sync"]
    assert "two_joins_into_one_range" in report["never_met"]


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 3.0), (0.99, 4.0)])
def test_quantiles(share: float, expected: float) -> None:
    assert expected == quantile([4.0, 1.0, 3.0, 2.0], share)


def test_nothing_has_no_quantile() -> None:
    assert quantile([], 0.5) is None


# --- the command -----------------------------------------------------------------------------------------------------


def test_run_exits_0_and_writes_the_totals_when_all_is_clean(tmp_path: Path) -> None:
    file = tmp_path / "totals.json"
    arguments = ["run", "--seeds", "2", "--calm", "--jobs", "1", "--json", str(file), *SMALL_OPTIONS]
    result = CliRunner().invoke(main, arguments)
    assert 0 == result.exit_code, result.output
    report = json.loads(file.read_text())
    assert (2, []) == (report["seeds"], report["failing_seeds"])


def test_run_exits_1_and_says_how_to_replay_what_failed() -> None:
    arguments = ["run", "--seed", "4", "--calm", "--mutant", "released_and_still_crawled", *SMALL_OPTIONS]
    result = CliRunner().invoke(main, arguments)
    assert 1 == result.exit_code
    again = "replay 4 --peers 3 --pages 30 --sites 4 --delay 0.2 --mutant released_and_still_crawled"
    assert again in " ".join(result.output.split())


def test_a_kept_plan_is_replayed_and_its_story_told(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(Plan(1, 2, (Event(0.5, Kind.DUPLICATE, amount=0.5, for_s=2.0),)).to_json())
    result = CliRunner().invoke(main, ["replay", str(file), "--trace", "--pages", "20", "--sites", "3"])
    assert "plan of seed 1: 2 peers, delay 1 s, 1 events" in result.output
    assert "peer.begun" in result.output


@pytest.mark.worlds
def test_shrinking_leaves_out_what_the_violation_does_not_need(tmp_path: Path) -> None:
    plan, short = tmp_path / "plan.json", tmp_path / "short.json"
    plan.write_bytes(Plan(5, 3, (Event(0.5, Kind.DELAY, amount=0.1, for_s=1.0),)).to_json())
    options = ["--judge", "polite", "--mutant", "released_and_still_crawled", "-o", str(short), *SMALL_OPTIONS]
    result = CliRunner().invoke(main, ["shrink", str(plan), *options])
    assert 0 == result.exit_code, result.output
    assert () == Plan.from_json(short.read_bytes()).events


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", "--trace"], "name it with --seed"),
        (["replay", "no-such-file"], "neither a seed nor a plan"),
        (["mutants", "no_such_bug"], "no such mutant"),
        (["shrink", "1", "--judge", "no_such_judge", *SMALL_OPTIONS], "is clean"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], why: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code not in (0, None)
    assert why in result.output


def test_mutants_are_listed_with_what_they_break() -> None:
    result = CliRunner().invoke(main, ["mutants", "--list"])
    assert 0 == result.exit_code
    assert "robots_ignored" in result.output


def test_help_teaches_by_example() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert "python -m sim replay 42" in result.output
