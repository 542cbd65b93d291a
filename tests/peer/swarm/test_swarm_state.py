"""Test that the later order counts for a peer, in any sequence of arrival."""

from hypothesis import given, strategies as st

from kadcrawl.link.wire.messages import COUNT_MAX
from kadcrawl.peer.swarm.swarm_state import AHEAD_MAX_S, SwarmState, fingerprint_of_seeds

NOW = 1.8e9
STAMP = int(NOW * 1000)
SAID = st.tuples(st.integers(0, 5) | st.integers(0, COUNT_MAX), st.booleans())
MARKS = 2**32


def heard(*said: tuple[int, bool]) -> tuple[int, bool]:
    course = SwarmState()
    for stamp, paused in said:
        course.hear(stamp, NOW, paused=paused)
    return course.stamp, course.paused


@given(st.lists(SAID, max_size=6).flatmap(lambda said: st.tuples(st.just(said), st.permutations(said))))
def test_all_come_to_the_same_in_whatever_order_they_hear(orders: tuple[list[tuple[int, bool]], ...]) -> None:
    one, other = orders
    assert heard(*one) == heard(*other) == heard(*one, *other, *one)


def test_the_later_order_counts() -> None:
    assert heard((1, True), (2, False)) == heard((2, False), (1, True)) == (2, False)


def test_of_two_orders_at_once_the_pause_counts() -> None:
    assert heard((1, True), (1, False)) == heard((1, False), (1, True)) == (1, True)


@given(st.integers(0, STAMP + int(AHEAD_MAX_S) * 1000), st.booleans())
def test_after_every_order_there_is_a_later_one(stamp: int, paused: bool) -> None:
    course = SwarmState(stamp, paused=paused)
    for verb in ("pause", "resume"):
        order = course.order(verb, NOW)
        course.hear(order.stamp, NOW + 1, paused=verb == "pause")
        assert course.paused == (verb == "pause")


def test_who_has_missed_an_order_gives_a_later_one_all_the_same() -> None:
    one, other = SwarmState(), SwarmState()
    pause = one.order("pause", NOW)
    one.hear(pause.stamp, NOW, paused=True)
    resume = other.order("resume", NOW + 60)
    for course in (one, other):
        course.hear(resume.stamp, NOW + 60, paused=False)
    assert [False, False] == [one.paused, other.paused]


def test_nobody_uses_up_what_later_orders_need() -> None:
    one = SwarmState()
    one.hear(COUNT_MAX, NOW, paused=True)
    assert one.stamp == STAMP + AHEAD_MAX_S * 1000
    resume = one.order("resume", NOW)
    other = SwarmState()
    for course in (one, other):
        course.hear(resume.stamp, NOW + 1, paused=False)
        assert (resume.stamp, False) == (course.stamp, course.paused)


def test_each_swarm_state_has_a_fingerprint_of_its_own() -> None:
    courses = [SwarmState(stamp, paused=paused) for stamp in (0, 1, STAMP) for paused in (False, True)]
    marks = [fingerprint_of_seeds(urls) for urls in ([], ["http://a/"], ["http://b/"], ["http://a/", "http://b/"])]
    fingerprints = {course.fingerprint(mark) for course in courses for mark in marks}
    assert len(courses) * len(marks) == len(fingerprints)
    assert all(0 < number < MARKS for number in [*fingerprints, *marks])
    assert fingerprint_of_seeds(["http://a/", "http://b/"]) == fingerprint_of_seeds(["http://b/", "http://a/"])
