"""Leaves behind a NAT in whole simulated worlds work while peers die, and no peer tries to reach them."""

from collections import Counter

import msgspec
import pytest

from sim.plan import LEAF_FIRST, Event, Kind, Plan
from sim.trial import Size, Trial, TrialOutcome, run

pytestmark = pytest.mark.worlds

SMALL = Size(pages=120, sites=16)
CALM = Plan(11, 5, (), delay_s=0.5, leaves=2)
LEAVES = range(LEAF_FIRST, LEAF_FIRST + CALM.leaves)
KILLED_AT_S = 6.0


class Seen:
    """Observations of the leaves of one trial."""

    def __init__(self) -> None:
        self.pages: Counter[int] = Counter()
        """The most pages of each leaf, over its incarnations."""
        self.homes: dict[int, list[int]] = {}
        """Machines to which each leaf belonged, in their order."""
        self.turned_away = 0

    def look(self, trial: Trial) -> None:
        self.turned_away = trial._loop.network.turned_away
        numbers = {machine.host.ip: machine.number for machine in trial.machines.machines.values()}
        for machine in trial.machines.leaves:
            leaf = machine.leaf
            if leaf is not None and leaf.begun:
                self.pages[machine.number] = max(self.pages[machine.number], leaf.counters.pages)
                homes = self.homes.setdefault(machine.number, [])
                home = numbers.get(leaf.contact.host)
                if home is not None and homes[-1:] != [home]:
                    homes.append(home)


def lived(plan: Plan) -> tuple[TrialOutcome, Seen]:
    seen = Seen()
    return run(plan, SMALL, watch=seen.look), seen


def home_at(seconds: float, calm: Plan) -> int:
    """Return which machine the first leaf hangs on then: up to there each world is like the calm one."""
    seen = Seen()
    homes: list[int] = []

    def look(trial: Trial) -> None:
        seen.look(trial)
        if trial.now < seconds:
            homes[:] = seen.homes.get(LEAF_FIRST, [])[-1:]

    run(calm, SMALL, watch=look)
    return homes[0]


@pytest.mark.parametrize("balance", ["off", "level"])
def test_in_a_calm_swarm_leaves_do_their_part_and_no_peer_dials_them(balance: str) -> None:
    outcome, seen = lived(msgspec.structs.replace(CALM, balance=balance, block_urls=2))
    assert {} == outcome.violations
    assert outcome.duplicates <= 2, "as peers come, a cell may move while its first page is with a leaf"
    assert 0 == seen.turned_away
    assert set(LEAVES) == set(seen.pages)
    assert sum(seen.pages.values()) > outcome.urls // 6


def test_when_its_full_peer_is_killed_a_leaf_goes_to_another() -> None:
    duplicates = urls = 0
    for seed in (CALM.seed, 13, 21):
        calm = msgspec.structs.replace(CALM, seed=seed)
        home = home_at(KILLED_AT_S, calm)
        outcome, seen = lived(msgspec.structs.replace(calm, events=(Event(KILLED_AT_S, Kind.KILL, (home,)),)))
        assert {} == outcome.violations
        duplicates, urls = duplicates + outcome.duplicates, urls + outcome.urls
        assert 0 == seen.turned_away
        homes = seen.homes[LEAF_FIRST]
        assert home in homes
        assert homes[-1] != home
    # In one world that is a handful of pages, and one more by chance.
    assert duplicates < urls // 20, "that is more than what was in hand"


@pytest.mark.parametrize("kind", [Kind.KILL, Kind.LEAVE, Kind.FREEZE])
def test_a_leaf_that_goes_takes_nothing_away(kind: Kind) -> None:
    events = (
        Event(4.0, kind, (LEAF_FIRST,), for_s=6.0),
        Event(7.0, kind, (LEAF_FIRST + 1,), for_s=3.0),
        Event(12.0, Kind.RESTART, (LEAF_FIRST,)),
    )
    outcome, seen = lived(msgspec.structs.replace(CALM, events=events))
    assert {} == outcome.violations
    assert seen.pages[LEAF_FIRST] > 0


def test_leaves_live_through_a_swarm_in_trouble() -> None:
    events = (
        Event(3.0, Kind.LOSS, for_s=10.0, amount=0.1),
        Event(4.0, Kind.KILL, (1,)),
        Event(6.0, Kind.KILL, (LEAF_FIRST,)),
        Event(8.0, Kind.JOIN, (5,)),
        Event(9.0, Kind.RESTART, (LEAF_FIRST,)),
        Event(15.0, Kind.LEAVE, (2,)),
        Event(16.0, Kind.RESTART, (1,)),
        Event(18.0, Kind.FREEZE, (3,), for_s=4.0),
    )
    outcome, seen = lived(msgspec.structs.replace(CALM, events=events))
    assert {} == outcome.violations
    assert 0 == seen.turned_away


def test_a_delay_that_a_person_lifts_ends_also_at_the_leaves_that_have_pages_of_the_site() -> None:
    """Each loan told the lifted delay on, as no request of a full peer learned what is left of it."""
    slow_s = 40.0
    events = tuple(Event(4.0, Kind.SITE_SLOW, (0,), 6.0, float(site), value=slow_s) for site in range(3))
    outcome = run(Plan(5, 2, events, delay_s=0.25, own_delay_s=1.0, leaves=4))
    assert {} == outcome.violations
    assert outcome.virtual_s < 2 * slow_s, "a site rests once more, and not after each page"
