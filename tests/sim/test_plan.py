"""Fault plans: the same from a seed, never too much at once, whole however many events are taken out."""

from collections import Counter

import msgspec
import pytest

from sim.draw import ADDRESSES, DELAYS_S, FACTORS, FAULTS_FROM_S, FAULTS_UNTIL_S, LEAVERS_MIN, REFUSING, TRAILS, draw
from sim.draw_limits import AMPLE_PAGES
from sim.draw_overload import DOWN_S
from sim.plan import BRIEF_S, RECOVERY_S, UNDISTURBING, Event, Kind, Plan, proxy_fault
from sim.shrink import shrink


def exposed_at_once(plan: Plan) -> int:
    """Return how many machines are exposed at most: gone, or back for less than `SETTLE_S`; a cut-off half is one.

    Many that leave together are as many as may be. A machine that stands still briefly or with all is not gone.
    """
    ends: dict[tuple[int, ...], float] = {}
    most = 0
    for event in plan.events:
        if event.kind is Kind.FREEZE and (event.for_s <= BRIEF_S or len(event.machines) >= plan.peers):
            continue
        if event.kind is Kind.LEAVE and len(event.machines) > 1:
            for place in range(plan.exposed_max):
                ends[(*event.machines, -place)] = event.at_s + RECOVERY_S
        elif event.kind in (Kind.KILL, Kind.AMBUSH, Kind.LEAVE):
            for machine in event.machines:
                restarts = [one.at_s for one in plan.events if one.kind is Kind.RESTART and machine in one.machines]
                ends[(machine,)] = (
                    min((at for at in restarts if at >= event.at_s), default=event.at_s + event.for_s) + RECOVERY_S
                )
        elif event.kind in (Kind.FREEZE, Kind.FULL, Kind.PARTITION, Kind.ONE_WAY):
            alone = [(one,) for one in event.machines]
            for group in [event.machines] if len(alone) > plan.exposed_max else alone:
                ends[group] = max(event.at_s + event.for_s + RECOVERY_S, ends.get(group, 0.0))
        # Times in plans are rounded to milliseconds.
        most = max(most, sum(until > event.at_s + 0.002 for until in ends.values()))
    return most


@pytest.mark.parametrize("copies", [2, 3, 4, 5])
@pytest.mark.parametrize("peers", [2, 3, 4, 8, 16, 100])
def test_no_more_machines_are_exposed_at_once_than_the_promise_allows(peers: int, copies: int) -> None:
    plans = [draw(seed, peers, copies=copies) for seed in range(100)]
    assert {copies - 1} == {plan.exposed_max for plan in plans}
    most = max(map(exposed_at_once, plans))
    assert most <= copies - 1
    assert peers < 2 * (copies - 1) or most == copies - 1


def test_as_many_are_killed_together_as_the_promise_allows() -> None:
    events = [event for seed in range(60) for event in draw(seed, 16, copies=5).events]
    assert 4 == max(len(event.machines) for event in events if event.kind is Kind.KILL)


def test_every_number_of_copies_is_drawn_and_most_jobs_keep_the_usual() -> None:
    drawn = Counter(draw(seed, 16).copies for seed in range(200))
    assert {2, 3, 4, 5} == set(drawn)
    assert drawn[3] > 100
    assert 3 == Plan.from_json(b'{"seed": 1, "peers": 2, "events": []}').copies


def test_the_same_seed_draws_the_same_plan_and_another_another() -> None:
    assert draw(7, 16) == draw(7, 16)
    assert draw(7, 16).events != draw(8, 16).events


def test_everything_that_can_happen_does_in_a_few_hundred_seeds() -> None:
    kinds = Counter(event.kind for seed in range(300) for event in draw(seed, 16).events)
    assert set(Kind) == set(kinds)
    disks = {event.disk for seed in range(300) for event in draw(seed, 16).events if event.kind is Kind.RESTART}
    assert {"same", "old", "none"} == disks


def test_jobs_and_webs_are_of_every_kind_and_default_in_older_plans() -> None:
    plans = [draw(seed, 16) for seed in range(100)]
    assert set(DELAYS_S) == {(plan.delay_s, plan.own_delay_s) for plan in plans}
    assert set(TRAILS) == {plan.trails for plan in plans}
    assert set(REFUSING) == {plan.refusing for plan in plans}
    assert {"host", "domain", "url"} == {plan.partition for plan in plans}
    assert not any(plan.treatments for plan in plans if plan.partition != "host")
    assert set(ADDRESSES) == {plan.per_ip for plan in plans}
    assert set(FACTORS) == {plan.delay_factor for plan in plans}
    old = Plan.from_json(b'{"seed": 1, "peers": 2, "events": []}')
    assert {False, True} == {plan.streamed for plan in plans}
    assert (1.0, 2.0, 0, False) == (old.delay_s, old.own_delay_s, old.trails, old.streamed)
    assert (0.0, 0.0, 0, "host") == (old.refusing, old.delay_factor, old.per_ip, old.partition)


def test_limits_and_recrawls_are_drawn_beside_all_else_and_older_plans_have_none() -> None:
    plans = [draw(seed, 16) for seed in range(150)]
    limited = [plan for plan in plans if plan.max_pages is not None or plan.max_time_s is not None]
    assert 20 < len(limited) < 60
    assert {True, False} == {plan.max_time_s is not None for plan in limited if plan.recrawl_after_s is None}
    assert any(plan.max_pages == AMPLE_PAGES for plan in limited)
    recrawling = [plan for plan in plans if plan.recrawl_after_s is not None]
    assert {True, False} == {plan.max_time_s is None for plan in recrawling}
    assert all(plan in limited for plan in recrawling), "a recrawl never ends by itself"
    assert {"hour", "day", "week", "month", None} == {plan.calendar for plan in limited}
    assert not any(plan.calendar for plan in recrawling)
    assert any(plan.balance != "off" for plan in recrawling)
    assert any(plan.partition == "url" for plan in limited)
    cut_off = [plan for plan in limited if plan.max_pages != AMPLE_PAGES]
    assert not any(event.kind in (Kind.OUTAGE, Kind.RETRY) for plan in cut_off for event in plan.events)
    old = Plan.from_json(b'{"seed": 1, "peers": 2, "events": []}')
    assert (None, None, None) == (old.max_pages, old.max_time_s, old.recrawl_after_s)


def test_proxies_are_drawn_beside_all_else_but_a_delay_of_addresses() -> None:
    plans = [draw(seed, 16) for seed in range(200)]
    proxied = [plan for plan in plans if plan.proxies]
    assert 12 < len(proxied) < 40
    assert not any(plan.per_ip for plan in proxied)
    assert {0, 1, 2} == {plan.dead_proxies for plan in proxied}
    assert not any(plan.dead_proxies for plan in plans if not plan.proxies)
    assert any(plan.balance != "off" for plan in proxied)
    assert any(plan.max_pages is not None or plan.max_time_s is not None for plan in proxied)
    assert 0 == Plan.from_json(b'{"seed": 1, "peers": 2, "events": []}').proxies


def test_limits_proxies_and_the_calendar_meet() -> None:
    plans = [draw(seed, 16) for seed in range(300)]
    few = [plan for plan in plans if plan.max_pages not in (None, AMPLE_PAGES)]
    assert any(all(event.kind in UNDISTURBING for event in plan.events) for plan in few)
    recrawling = [plan for plan in plans if plan.recrawl_after_s is not None]
    assert any(plan.max_pages is not None and plan.max_time_s is not None for plan in recrawling)
    dated = [plan for plan in plans if plan.calendar is not None]
    assert {True, False} == {plan.max_time_s is not None for plan in dated}
    down = [(plan, one) for plan in plans for one in plan.events if one.kind is Kind.PROXY_DOWN]
    assert {"refuses", "bad gateway"} == {proxy_fault(int(one.amount)) for _, one in down}
    assert all(one.amount < plan.proxies and plan.max_time_s is None for plan, one in down)
    assert not any(draw(seed, 16, faults=False).events for seed in range(100))


def test_a_recrawl_of_fingerprints_has_epochs_no_clock_that_is_hours_off_and_no_higher_limit() -> None:
    higher = Event(3.0, Kind.SET_PAGES, (1,), value=5000.0)
    jumping = Plan(1, 3, (Event(3.0, Kind.JUMP, (1,), amount=-7200.0), higher, Event(3.0, Kind.KILL, (1,))))
    assert jumping.events == jumping.kept_by("bloom").events
    again = msgspec.structs.replace(jumping, recrawl_after_s=8.0)
    assert (None, 2.0) == (again.grain_s, again.kept_by("bloom").grain_s)
    for of_time in (again, msgspec.structs.replace(jumping, calendar="hour")):
        assert [Kind.KILL] == [event.kind for event in of_time.kept_by("bloom").events]
    assert None is jumping.kept_by("bloom").grain_s


def test_a_delay_may_be_given_instead_of_the_one_drawn() -> None:
    plan = draw(7, 16)
    assert plan is plan.delayed(None)
    assert 0.5 == plan.delayed(0.5).delay_s
    assert plan.events == plan.delayed(0.5).events


def test_sites_are_slowed_down_for_a_time_and_for_good_with_a_bearable_delay() -> None:
    orders = [event for seed in range(300) for event in draw(seed, 16).events if event.kind is Kind.SITE_SLOW]
    assert {True, False} == {event.for_s > 0 for event in orders}
    assert max(event.value for event in orders if not event.for_s) < 10.0 < max(event.value for event in orders)


def test_the_delay_becomes_longer_and_a_limit_of_pages_larger_or_smaller_where_a_job_has_one() -> None:
    plans = [draw(seed, 16) for seed in range(300)]
    delays = [(plan, event) for plan in plans for event in plan.events if event.kind is Kind.SET_DELAY]
    assert delays
    assert all(event.value > plan.delay_s for plan, event in delays)
    pages = [(plan, event) for plan in plans for event in plan.events if event.kind is Kind.SET_PAGES]
    assert all(plan.max_pages is not None for plan, _ in pages)
    assert {True, False} == {event.value > (plan.max_pages or 0) for plan, event in pages}


def test_no_plan_has_everything_and_many_leave_together_in_some() -> None:
    plans = [draw(seed, 16) for seed in range(100)]
    assert max(len({event.kind for event in plan.events}) for plan in plans) < len(Kind)
    leaves = [event for plan in plans for event in plan.events if event.kind is Kind.LEAVE]
    assert any(len(event.machines) >= LEAVERS_MIN for event in leaves)


def test_events_come_in_order_and_faults_begin_in_their_time() -> None:
    for seed in range(100):
        events = draw(seed, 16).events
        assert list(events) == sorted(events, key=lambda event: event.at_s)
        faults = [event for event in events if event.kind not in (Kind.SNAPSHOT, Kind.RESTART)]
        # What follows overload comes as much later.
        later_s = sum(event.for_s for event in events if event.kind is Kind.FREEZE) + DOWN_S[1] + RECOVERY_S
        assert all(FAULTS_FROM_S <= event.at_s < FAULTS_UNTIL_S + 5 + later_s for event in faults)


def test_enough_machines_stand_at_any_time() -> None:
    for seed in range(300):
        plan, up = draw(seed, 4), {0, 1, 2, 3}
        for event in plan.events:
            if event.kind in (Kind.KILL, Kind.AMBUSH, Kind.LEAVE):
                up -= set(event.machines)
            elif event.kind in (Kind.JOIN, Kind.RESTART):
                up |= set(event.machines)
            assert len(up) >= 2


def test_a_calm_plan_has_no_events() -> None:
    assert () == draw(1, 16, faults=False).events


def test_a_plan_goes_through_json_and_back() -> None:
    plan = draw(3, 16)
    assert plan == Plan.from_json(plan.to_json())


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b'{"seed": 1, "peers": 2, "events": [{"at_s": 1, "kind": "?"}]}'])
def test_what_is_no_plan_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        Plan.from_json(text)


def test_what_lasts_has_two_moments_and_the_plan_is_over_after_the_last() -> None:
    freeze = Event(1.0, Kind.FREEZE, (1,), for_s=5.0)
    kill = Event(2.0, Kind.KILL, (2,))
    plan = Plan(1, 3, (freeze, kill))
    assert [(1.0, True, freeze), (2.0, True, kill), (6.0, False, freeze)] == plan.moments()
    assert 6.0 == plan.over_s


def test_a_plan_is_told_line_by_line() -> None:
    events = (
        Event(1.5, Kind.RESTART, (3,), disk="old"),
        Event(2.0, Kind.LOSS, amount=0.1, for_s=4.0),
        Event(3.0, Kind.PARTITION, (1, 2), for_s=4.0),
    )
    assert str(Plan(9, 4, events)).splitlines() == [
        "plan of seed 9: 4 peers, delay 1 s, 3 events",
        "   1.500 s  restart   3 on old disk",
        "   2.000 s  loss      by 0.1 for 4.000 s",
        "   3.000 s  partition 1,2 for 4.000 s",
    ]


def test_a_plan_tells_its_limits() -> None:
    plan = Plan(9, 4, (), max_pages=50, max_time_s=30.0, recrawl_after_s=8.5)
    head = "plan of seed 9: 4 peers, again after 8.5 s, at most 50 pages, at most 30 seconds, delay 1 s, 0 events"
    assert head == str(plan)


@pytest.mark.parametrize("needed", [(), (4,), (0, 19), (3, 4, 5), (1, 8, 15)])
def test_a_shrunk_plan_has_the_needed_events_and_no_others(needed: tuple[int, ...]) -> None:
    events = tuple(Event(float(at), Kind.KILL, (at,)) for at in range(20))
    kept = {events[at] for at in needed}
    asked = []

    def fails(plan: Plan) -> bool:
        asked.append(plan)
        return kept <= set(plan.events)

    short = shrink(Plan(1, 16, events), fails)
    assert [events[at] for at in needed] == list(short.events)
    assert len(asked) < 100
