"""Campaigns: many trials over several processes, and the sums of their outcomes.

Each seed is a world of its own, so processes share nothing: a worker gets a `Task` and returns a `TrialOutcome`. A
trial that raises, or that takes longer than `TRIAL_WALL_S`, is an outcome too. Its violation is the reason.
"""

import multiprocessing
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

from kadcrawl.settings.job import History

from . import judges, sometimes
from .draw import draw
from .mutants import MUTANTS
from .plan import Plan
from .target_worlds import Mode, target_world
from .trial import USUAL, Size, TrialOutcome, run

TRIAL_WALL_S = 120
"""Wall-clock seconds after which a trial is ended. A trial of the default size takes about one second."""
TRIALS_PER_PROCESS = 500
"""Trials after which a worker process is replaced. This bounds the memory that finished trials leave behind."""

HURRIES = ("polite", "backs_off", "adapts", "within_connections")
"""The judges of requests that come too soon, or too many at a time."""


class Task(NamedTuple):
    """One trial to be made."""

    plan: Plan
    size: Size = USUAL
    mutant: str | None = None
    wall_most_s: int = TRIAL_WALL_S


class Hunt(NamedTuple):
    """One mutant to be found."""

    mutant: str
    seeds: range
    peers: int
    size: Size = USUAL
    delay_s: float | None = None
    """The job's delay in seconds. None: each seed draws its own."""
    mode: Mode = "exact"
    """The setting of the jobs (`sim/target_worlds.py`)."""


class Catch(NamedTuple):
    """The result of a hunt."""

    mutant: str
    mode: Mode
    seed: int | None
    """The first seed that exposes the mutant. None: no seed did."""
    tried: int
    """The number of seeds that were tried."""
    judges: tuple[str, ...]
    """The judges that found the mutant."""


def tasks(
    seeds: Iterable[int],
    peers: int,
    size: Size,
    *,
    delay_s: float | None = None,
    faults: bool = True,
    mutant: str | None = None,
    history: History = "exact",
    copies: int | None = None,
) -> Iterator[Task]:
    """Yield the trials of these seeds. The delay None leaves each seed its own, and so do the copies."""
    for seed in seeds:
        plan = draw(seed, peers, faults=faults, copies=copies)
        yield Task(plan.delayed(delay_s).kept_by(history), size, mutant)


def trials(todo: Iterable[Task], jobs: int) -> Iterator[TrialOutcome]:
    """Run trials in `jobs` processes and yield their outcomes as they come."""
    return _each(attempt, todo, jobs)


def hunts(todo: Iterable[Hunt], jobs: int) -> Iterator[Catch]:
    """Hunt mutants in `jobs` processes."""
    return _each(hunt, todo, jobs)


def attempt(task: Task) -> TrialOutcome:
    """Run one trial. An exception becomes an outcome with a violation."""
    try:
        with _ending(task.wall_most_s):
            return run(task.plan, task.size, mutant=task.mutant)
    except (Exception, TooLong) as error:
        return _broken(task.plan, error)


def modes_of(mutant: str, mode: Mode | None, *, quick: bool = False) -> tuple[Mode, ...]:
    """Return the modes in which a mutant is hunted: those of its worlds, or only `mode` if that is among them.

    A `quick` hunt is in one mode.
    """
    modes = MUTANTS[mutant].modes
    if mode is not None and len(modes) > 1:
        return tuple(one for one in modes if one == mode)
    return modes[:1] if quick else modes


def hunt(one: Hunt) -> Catch:
    """Try seeds until a judge finds a violation that the same world without the mutant does not have."""
    for tried, seed in enumerate(one.seeds, 1):
        plan = target_world(MUTANTS[one.mutant].topic, one.mode, seed, one.peers).delayed(one.delay_s)
        found = attempt(Task(plan, one.size, one.mutant))
        if not found.clean:
            control = attempt(Task(plan, one.size))
            caught = tuple(name for name in found.violations if name not in control.violations)
            if caught:
                return Catch(one.mutant, one.mode, seed, tried, caught)
    return Catch(one.mutant, one.mode, None, len(one.seeds), ())


@dataclass(slots=True)
class Totals:
    """The sums of a campaign's outcomes."""

    seeds: int = 0
    virtual_s: float = 0.0
    messages: int = 0
    kills: int = 0
    partitions: int = 0
    urls: int = 0
    lent: int = 0
    """Requests for pages that a machine had borrowed."""
    duplicates: int = 0
    cut_short: int = 0
    parted: int = 0
    violations: Counter[str] = field(default_factory=Counter)
    """Judge -> number of violations."""
    met: Counter[str] = field(default_factory=Counter)
    repairs_s: list[float] = field(default_factory=list)
    failing: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    """Seed -> judge -> violations."""
    began: float = field(default_factory=time.monotonic)

    def add(self, outcome: TrialOutcome) -> None:
        self.seeds += 1
        self.virtual_s += outcome.virtual_s
        self.messages += outcome.messages
        self.kills += outcome.kills
        self.partitions += outcome.partitions
        self.urls += outcome.urls
        self.lent += outcome.lent
        self.duplicates += outcome.duplicates
        self.cut_short += outcome.cut_short
        self.parted += outcome.parted
        self.violations.update({name: len(found) for name, found in outcome.violations.items()})
        self.met.update(outcome.met)
        if outcome.repair_s is not None:
            self.repairs_s.append(outcome.repair_s)
        if not outcome.clean:
            self.failing[outcome.plan.seed] = outcome.violations

    @property
    def wall_s(self) -> float:
        return time.monotonic() - self.began

    def report(self) -> dict[str, Any]:
        """Return the totals in the form written to JSON."""
        found = self.violations
        return {
            "seeds": self.seeds,
            "virtual_hours": round(self.virtual_s / 3600, 3),
            "messages": self.messages,
            "kills": self.kills,
            "partitions": self.partitions,
            "urls": self.urls,
            "lent": self.lent,
            "lost": found["nothing_lost"],
            "duplicates": self.duplicates,
            "duplicate_ratio": round(self.duplicates / self.urls, 6) if self.urls else 0.0,
            "cut_short": self.cut_short,
            "politeness_violations": sum(
                found[name] for name in ("polite", "backs_off", "adapts", "within_connections")
            ),
            "robots_violations": found["robots_obeyed"],
            "false_terminations": found["no_early_end"],
            "missed_terminations": found["no_missing_end"],
            "owner_disagreements": found["one_owner_when_quiet"],
            "repair_seconds": {"p50": quantile(self.repairs_s, 0.5), "p99": quantile(self.repairs_s, 0.99)},
            "failing_seeds": sorted(self.failing),
            "violations": {judge.__name__: found[judge.__name__] for judge in judges.JUDGES},
            "parted": self.parted,
            "sometimes": {name: self.met[name] for name in sometimes.AWKWARD},
            "never_met": sometimes.never_met(self.met),
            "wall_seconds": round(self.wall_s, 1),
        }


def quantile(values: list[float], share: float) -> float | None:
    """Return the smallest value that at least the given share of the values does not exceed. None if there are no
    values."""
    return round(sorted(values)[min(len(values) - 1, int(share * len(values)))], 3) if values else None


class TooLong(KeyboardInterrupt):
    """A trial took too long. The base class keeps each `except Exception` from stopping it."""


def _each(work: Any, todo: Iterable[Any], jobs: int) -> Iterator[Any]:
    if jobs == 1:
        yield from map(work, todo)
        return
    # Spawned, not forked: a worker starts as fresh as the process that replays a seed later.
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=TRIALS_PER_PROCESS) as pool:
        yield from pool.imap_unordered(work, todo)


@contextmanager
def _ending(seconds: int) -> Iterator[None]:
    """Raise TooLong after so many seconds of wall-clock time."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"the trial was not over after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _broken(plan: Plan, error: BaseException) -> TrialOutcome:
    return TrialOutcome(
        plan=plan,
        violations={judges.no_errors.__name__: ["the trial broke: " + "".join(traceback.format_exception(error))]},
        trace="",
        virtual_s=0.0,
        wall_s=0.0,
        messages=0,
        kills=0,
        partitions=0,
        urls=0,
        fetches=0,
        lent=0,
        duplicates=0,
        cut_short=0,
        parted=0,
        repair_s=None,
        met={},
    )
