"""Test which orders of a viewer are taken, and what is said of the others."""

from typing import Any

import pytest

from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.order_messages import ABOUT_CHARS_MAX
from kadcrawl.peer.dashboard.given_by_viewer import USER, viewer_order
from kadcrawl.peer.swarm.standing_orders import DELAY_MOST_S

SITE = "shop.example.org"


@pytest.mark.parametrize(
    ("told", "kind", "value"),
    [
        ({"order": "pause"}, "pause", 1.0),
        ({"order": "resume"}, "pause", None),
        ({"order": "exclude"}, "exclude", 1.0),
        ({"order": "include"}, "exclude", None),
        ({"order": "slow", "delay_s": 90}, "delay", 90.0),
        ({"order": "slow", "delay_s": None}, "delay", None),
    ],
)
def test_an_order_about_a_site_is_that_of_the_command(told: dict[str, Any], kind: str, value: float | None) -> None:
    order = viewer_order(told | {"site": SITE})
    assert order.about_site is not None
    given = order.about_site
    assert (kind, SITE, value, USER) == (given.kind, given.about, given.value, given.user)
    assert order.said.startswith(SITE)


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_an_order_without_a_site_is_to_the_whole_swarm(verb: str) -> None:
    order = viewer_order({"order": verb})
    assert (verb, None) == (order.verb, order.about_site)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"order": "exclude"},
        {"order": "stop"},
        {"order": 1, "site": SITE},
        {"order": "pause", "site": 1},
        {"order": "pause", "site": ""},
        {"order": "pause", "site": "x" * (ABOUT_CHARS_MAX + 1)},
        *({"order": "slow", "site": SITE, "delay_s": delay} for delay in (-1, True, "9", DELAY_MOST_S + 1, 1e400)),
    ],
)
def test_a_wrong_order_is_no_order(told: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        viewer_order(told)
