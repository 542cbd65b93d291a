"""Test the belief of one peer about the end of the crawl."""

from kadcrawl.overlay.waves.activity import Activity


def test_whoever_comes_after_the_end_makes_it_be_asked_for_again() -> None:
    activity = Activity()
    activity.armed = True
    activity.settle(idle=True)
    activity.end()
    assert (True, False) == (activity.over.is_set(), activity.idle.is_set())
    activity.doubt()
    assert (False, True) == (activity.over.is_set(), activity.idle.is_set())


def test_a_peer_that_comes_after_the_end_does_not_undo_it() -> None:
    """Found by seed 3799: idle and busy at once, who watches for the end did so for ever without a pause."""
    activity = Activity()
    activity.armed = True
    activity.end()
    activity.settle(idle=False)
    activity.doubt()
    assert (True, False) == (activity.busy.is_set(), activity.idle.is_set())


def test_whoever_comes_before_the_end_changes_nothing() -> None:
    activity = Activity()
    activity.armed = True
    for idle in (False, True):
        activity.settle(idle)
        activity.doubt()
        assert (not idle, idle) == (activity.busy.is_set(), activity.idle.is_set())


def test_a_limit_ends_a_rest_and_not_an_end() -> None:
    activity = Activity()
    activity.armed = True
    activity.settle(idle=True)
    activity.rest()
    activity.end_rest()
    assert (False, True) == (activity.resting, activity.idle.is_set())
    activity.end()
    activity.end_rest()
    assert (True, False) == (activity.over.is_set(), activity.idle.is_set())
