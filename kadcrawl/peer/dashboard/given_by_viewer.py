"""The orders of a viewer, as a page of the dashboard sends them, and the sentence that answers each. A decision.

Tests: tests/peer/dashboard/test_given_by_viewer.py
"""

from typing import Any, Literal, NamedTuple

from kadcrawl.errors import ConfigError
from kadcrawl.link.wire.order_messages import ABOUT_CHARS_MAX, StandingOrder
from kadcrawl.peer.swarm.standing_orders import DELAY_MOST_S

USER = "dashboard"
"""The user of orders that viewers give: a session has no name of a person."""


class ViewerOrder(NamedTuple):
    """An order of a viewer: about a site, or about the whole swarm."""

    said: str
    """The sentence for the viewer, once the order is given."""
    about_site: StandingOrder | None = None
    verb: Literal["pause", "resume"] | None = None
    """The order to the whole swarm, if it is not about a site."""


def viewer_order(told: dict[str, Any]) -> ViewerOrder:
    """Return the order in a JSON object. Raises ConfigError, with what to do, for anything else."""
    name, site = told.get("order"), told.get("site")
    if site is None:
        if name == "pause":
            return ViewerOrder("The swarm is paused.", verb="pause")
        if name == "resume":
            return ViewerOrder("The swarm goes on.", verb="resume")
        raise ConfigError("the whole swarm can be told to pause or to resume: name a site for any other order")
    if not isinstance(site, str) or not 0 < len(site) <= ABOUT_CHARS_MAX:
        raise ConfigError(f"a site is a text such as example.org, of at most {ABOUT_CHARS_MAX} characters")
    match name:
        case "pause":
            return ViewerOrder(f"{site} is paused.", StandingOrder("pause", site, 1.0, user=USER))
        case "resume":
            return ViewerOrder(f"{site} goes on.", StandingOrder("pause", site, None, user=USER))
        case "exclude":
            return ViewerOrder(f"{site} is excluded.", StandingOrder("exclude", site, 1.0, user=USER))
        case "include":
            return ViewerOrder(f"{site} is included again.", StandingOrder("exclude", site, None, user=USER))
        case "slow":
            return _slow(site, told.get("delay_s"))
        case _:
            raise ConfigError("an order is pause, resume, slow, exclude or include")


def _slow(site: str, delay_s: object) -> ViewerOrder:
    if delay_s is None:
        return ViewerOrder(f"{site} has its own delay again.", StandingOrder("delay", site, None, user=USER))
    if isinstance(delay_s, bool) or not isinstance(delay_s, int | float) or not 0 <= delay_s <= DELAY_MOST_S:
        raise ConfigError(f"a delay is from 0 to {DELAY_MOST_S} seconds, or null to lift it")
    said = f"{site} is left alone for {delay_s:g} s after each request."
    return ViewerOrder(said, StandingOrder("delay", site, float(delay_s), user=USER))
