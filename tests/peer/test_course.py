"""What one peer takes the swarm to be told: the later order counts, in whatever order they come."""

from hypothesis import given, strategies as st

from kadcrawl.link.messages import SERIALS
from kadcrawl.peer.course import Course

SAID = st.tuples(st.integers(0, 5), st.booleans())


def heard(*said: tuple[int, bool], since: int = 0) -> tuple[int, bool]:
    course = Course(since)
    for serial, paused in said:
        course.hear((since + serial) % SERIALS, paused=paused)
    return (course.serial - since) % SERIALS, course.paused


@given(st.lists(SAID, max_size=6).flatmap(lambda said: st.tuples(st.just(said), st.permutations(said))))
def test_all_come_to_the_same_in_whatever_order_they_hear(orders: tuple[list[tuple[int, bool]], ...]) -> None:
    one, other = orders
    assert heard(*one) == heard(*other) == heard(*one, *other, *one)
    assert heard(*one) == heard(*one, since=SERIALS - 3)


def test_the_later_order_counts() -> None:
    assert heard((1, True), (2, False)) == heard((2, False), (1, True)) == (2, False)


def test_of_two_orders_at_once_the_pause_counts() -> None:
    assert heard((1, True), (1, False)) == heard((1, False), (1, True)) == (1, True)


@given(st.integers(0, SERIALS - 1), st.booleans())
def test_after_every_order_there_is_a_later_one(serial: int, paused: bool) -> None:
    course = Course(serial, paused=paused)
    for verb in ("pause", "resume"):
        order = course.order(verb)
        course.hear(order.serial, paused=verb == "pause")
        assert course.paused == (verb == "pause")


def test_each_course_has_a_fingerprint_of_its_own() -> None:
    courses = [Course(serial, paused=paused) for serial in (0, 1, SERIALS - 1) for paused in (False, True)]
    seeds = [[], ["http://a/"], ["http://b/"], ["http://a/", "http://b/"]]
    fingerprints = {course.fingerprint(urls) for course in courses for urls in seeds}
    assert len(courses) * len(seeds) == len(fingerprints)
    assert all(0 < fingerprint < SERIALS for fingerprint in fingerprints)
    assert courses[0].fingerprint(["http://a/", "http://b/"]) == courses[0].fingerprint(["http://b/", "http://a/"])
