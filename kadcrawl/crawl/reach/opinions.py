"""`Opinions`: what came of the requests of other peers for hosts that this peer missed, for some minutes each.

A host that another peer reached is fetched through other peers for a while. A host that other peers missed too needs no
further opinion for a while, so a dead site costs one question in that time and not one for each URL. A decision: times
are wall-clock seconds.

Tests: tests/crawl/reach/test_opinions.py
"""

from dataclasses import dataclass
from typing import NamedTuple

from kadcrawl.crawl.fetch.result import FetchError
from kadcrawl.link.wire.relay_messages import Unable

BY_PEERS_S = 600.0
"""Seconds for which a host that another peer reached is fetched through other peers."""
BOTH_MISSED_S = 300.0
"""Seconds for which a host that other peers missed as well needs no further opinion."""
UNHEARD_MAX_S = 60.0
"""Seconds for which a URL waits for the first opinion. Then this peer counts as the only peer that can try."""
HELPERS_MAX = 1_000
"""Peers remembered that are not to be asked for a while."""
HOSTS_MAX = 10_000
"""Hosts remembered."""
HELPER_REST_S = 10.0
"""Seconds for which a peer that was silent, or whose network fails, is not asked again."""
BUSY_REST_S = 1.0
"""Seconds for which a peer without room is not asked again."""


class HostFailure(NamedTuple):
    """The failure of a host that other peers missed."""

    peers: int
    """Other peers that missed the host."""
    error: FetchError
    detail: str


@dataclass(slots=True)
class _Host:
    """The opinions on one host."""

    since: float
    """Second at which this peer first missed the host and had no opinion."""
    reached_until: float = 0.0
    missed_until: float = 0.0
    failure: HostFailure | None = None
    helper: bytes = b""
    """ID of the peer that last reached the host."""


class Opinions:
    """The opinions of other peers on hosts."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._resting: dict[bytes, tuple[float, bool]] = {}
        """ID of a peer that could not help -> (second from which it may be asked again, its network fails)."""

    def helper_of(self, host: str, now: float) -> bytes | None:
        """Return the ID of the peer that reached the host lately, or None if this peer is to try by itself."""
        known = self._hosts.get(host)
        return known.helper if known is not None and now < known.reached_until else None

    def failure_of(self, host: str, now: float) -> HostFailure | None:
        """Return how other peers have missed the host lately, or None if an opinion is wanted."""
        known = self._hosts.get(host)
        return known.failure if known is not None and now < known.missed_until else None

    def may_wait(self, host: str, now: float) -> bool:
        """Return whether a URL of a missed host may wait for an opinion. Begins the wait."""
        return now < self._host(host, now).since + UNHEARD_MAX_S

    def reached(self, host: str, helper: bytes, now: float) -> None:
        """Note that another peer has reached a host."""
        known = self._host(host, now)
        known.reached_until, known.missed_until, known.helper, known.since = now + BY_PEERS_S, 0.0, helper, now

    def missed(self, host: str, failure: HostFailure, now: float) -> None:
        """Note that other peers have missed a host, too."""
        known = self._host(host, now)
        known.reached_until, known.missed_until = 0.0, now + BOTH_MISSED_S
        known.failure, known.since = failure, now

    def forget(self, host: str) -> None:
        """Forget a host that this peer reaches by itself."""
        self._hosts.pop(host, None)

    def forget_reached(self) -> None:
        """Try all hosts directly again, as the network of this peer works."""
        self._hosts.clear()

    # --- helpers -------------------------------------------------------------------------------------------------

    def cannot_help(self, helper: bytes, unable: Unable, now: float) -> None:
        """Note a peer that did not try, with the reason that it gave: it is not asked for a while."""
        while len(self._resting) >= HELPERS_MAX and helper not in self._resting:
            del self._resting[next(iter(self._resting))]
        rest_s = BUSY_REST_S if unable == "busy" else HELPER_REST_S
        self._resting[helper] = now + rest_s, unable == "network"

    def can_help(self, helper: bytes, now: float) -> bool:
        """Return whether a peer may be asked."""
        return self._resting.get(helper, (0.0, False))[0] <= now

    def lacks_network(self, helper: bytes, now: float) -> bool:
        """Return whether a peer has said lately that its network fails."""
        until, lacks_network = self._resting.get(helper, (0.0, False))
        return lacks_network and now < until

    def _host(self, host: str, now: float) -> _Host:
        known = self._hosts.get(host)
        if known is None:
            while len(self._hosts) >= HOSTS_MAX:
                del self._hosts[next(iter(self._hosts))]
            known = self._hosts[host] = _Host(now)
        elif now >= max(known.reached_until, known.missed_until, known.since + 2 * UNHEARD_MAX_S):
            known.since = now
        return known
