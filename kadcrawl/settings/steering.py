"""`Steering`: the orders of a person that are in force, as the parts of a crawl ask for them. A decision: no I/O.

The orders themselves, with their stamps, are part of the swarm state (peer/swarm/standing_orders.py). An order about
sites has a match as site rules have them, and the most specific match with an order decides. A site is named as
`urls.site_of` names it, by a host, a registered domain, or a URL.
"""

from collections.abc import Mapping, Sequence

from kadcrawl.errors import ConfigError
from kadcrawl.settings.host_matches import matching, most_specific
from kadcrawl.settings.scope_orders import ScopeOrders
from kadcrawl.settings.site_rules import EVERY, match_named
from kadcrawl.urls import Partition, site_of


class Steering:
    """The orders in force at one peer."""

    def __init__(self, partition: Partition) -> None:
        self._kind: Partition = "domain" if partition == "domain" else "host"
        self._paused: dict[str, bool] = {}
        """Match -> whether its sites are paused. A narrower False lets a site go on."""
        self._delays_s: dict[str, float] = {}
        self.delay_max_s = 0.0
        """The longest delay of all orders, or 0."""
        self._excluded: dict[str, bool] = {}
        """Match -> whether its sites are left out of the crawl."""
        self.scope = ScopeOrders()
        """The orders that bring URLs into the scope, or take them out."""
        self.version = 0
        """A number that changes with the orders."""
        self._drops: dict[str, int] = {}
        """Match -> stamp of the order to drop the URLs of its sites."""

    def follow(
        self,
        pauses: Mapping[str, bool],
        delays_s: Mapping[str, float],
        excluded: Mapping[str, bool] | None = None,
        drops: Mapping[str, int] | None = None,
        scope: Sequence[tuple[str, bool]] = (),
    ) -> None:
        """Take the orders in force, by match: paused sites, least seconds between two requests, and excluded sites.

        `drops` has the stamps of the orders to drop URLs, and `scope` the orders about the scope, the latest first.
        """
        self.scope.follow(scope)
        self._drops = dict(drops or {})
        self.version += 1
        self._paused, self._delays_s, self._excluded = dict(pauses), dict(delays_s), dict(excluded or {})
        self.delay_max_s = max(self._delays_s.values(), default=0.0)

    def renew(self) -> None:
        """Note that settings of sites have changed."""
        self.version += 1

    def is_paused(self, site: str) -> bool:
        """Return whether the URLs of a site wait for a person. Those of an excluded site end instead."""
        if not self._paused or self.is_excluded(site):
            return False
        return bool(most_specific(self._paused, self._name(site)))

    def is_excluded(self, site: str) -> bool:
        """Return whether a site is left out of the crawl."""
        return bool(self._excluded) and bool(most_specific(self._excluded, self._name(site)))

    @property
    def has_pauses(self) -> bool:
        """True if some site is paused by an order."""
        return any(self._paused.values())

    @property
    def has_drops(self) -> bool:
        """True if the URLs of some site were dropped by an order."""
        return bool(self._drops)

    def drop_order(self, site: str) -> int:
        """Return the stamp of the latest order to drop the URLs of a site, or 0. It does not apply to later URLs."""
        return max(matching(self._drops, self._name(site)), default=0) if self._drops else 0

    def delay_s(self, site: str) -> float:
        """Return the least seconds between two requests to a site by an order, or 0."""
        return (most_specific(self._delays_s, self._name(site)) or 0.0) if self._delays_s else 0.0

    def _name(self, site: str) -> str:
        return site_of(site, self._kind) if "://" in site else site


def match_of(text: str, partition: Partition) -> str:
    """Return the match of the sites that a person names in an order.

    The name is a host, `*.` and a domain, or the URL of a front page. Raises ConfigError for any other text, and for a
    host whose delay is that of its whole domain.
    """
    match = match_named(text)
    if match == EVERY:
        raise ConfigError(
            "an order names sites: `kadcrawl pause` pauses the whole swarm, and a site is like example.org"
        )
    domain = site_of(f"http://{match.removeprefix('*.')}/", "domain") if partition == "domain" else ""
    if domain and domain != match.removeprefix("*."):
        raise ConfigError(f"the hosts of a domain are one site in this crawl: name {domain}, not {match}")
    return match
