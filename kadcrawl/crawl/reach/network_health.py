"""`NetworkHealth` decides whether failures to connect lie with the sites or with the network of this peer.

Each direct request is evidence: a host that was reached proves the network, and a host that was missed counts against
it. After `HOSTS_MISSED` different hosts in a row the peer is in doubt. If other peers reach such hosts, and this peer
does not even reach hosts that it knows, the network fails. While it fails, other peers make the requests of this peer.
If no other peer reaches a host either, the network is unreachable: the crawl pauses for a bounded time, and then goes
on as if the failures were those of the sites. A decision: times are wall-clock seconds.

Tests: tests/crawl/reach/test_network_health.py
"""

import logging
from collections.abc import Iterable
from enum import Enum

HOSTS_MISSED = 5
"""Different hosts missed in a row that put the network in doubt. Fewer dead sites in a row are common."""
HOSTS_BY_OTHERS = 2
"""Hosts among these that others reach, which prove that the network of this peer fails."""
HOSTS_KEPT = 8
"""Hosts that were reached, or missed, whose URLs are kept for tests."""
TEST_LEAST_S, TEST_MOST_S = 5.0, 300.0
"""Seconds before the first test of a failing network, and the longest wait: it doubles with each test that fails."""

log = logging.getLogger(__name__)


class NetworkState(Enum):
    """The state of a peer's network to the sites."""

    FINE = "fine"
    """The peer makes its own requests."""
    FAILING = "failing"
    """Other peers reach sites that this peer does not, and make its requests."""
    UNREACHABLE = "unreachable"
    """Neither this peer nor another peer reaches any site, and the crawl waits."""
    GIVEN_UP = "given_up"
    """The same, after the crawl has waited for its time: failures count as those of the sites."""


class NetworkHealth:
    """The network of one peer, as its requests show it."""

    def __init__(self, wait_s: float, known: Iterable[str] = ()) -> None:
        """`wait_s` bounds the pause of an unreachable network, and 0 means no pause.

        `known` are URLs of hosts that an earlier run reached.
        """
        self.state = NetworkState.FINE
        self._wait_s = wait_s
        self._known: dict[str, None] = dict.fromkeys(list(known)[-HOSTS_KEPT:])
        """URLs of hosts that were reached, the latest last."""
        self._missed: dict[str, str] = {}
        """Host -> URL of the hosts missed since the last host that was reached, the latest last."""
        self._misses = 0
        """Different hosts missed since then."""
        self._by_others: dict[str, str] = {}
        """Host -> URL of these hosts that other peers have reached, the latest last."""
        self.recoveries = 0
        """Times that a failing network worked again."""
        self.without_proxy: str | None = None
        """The last URL for which no proxy was alive here."""
        self._tested = False
        """The known hosts were tested in this doubt, and missed."""
        self._warning: str | None = None
        self._since = 0.0
        """Second at which the network became unreachable."""
        self._test_at = 0.0
        self._test_wait_s = TEST_LEAST_S

    @property
    def is_failing(self) -> bool:
        """True if this peer cannot fetch for itself, nor for others."""
        return self.state is not NetworkState.FINE

    @property
    def in_doubt(self) -> bool:
        """True if so many hosts in a row were missed that the network must be tested."""
        return self._misses >= HOSTS_MISSED

    @property
    def known(self) -> list[str]:
        """URLs of hosts that were reached, the oldest first."""
        return [*self._known]

    # --- evidence ------------------------------------------------------------------------------------------------

    def reached(self, host: str, url: str) -> None:
        """Note that this peer has reached a host by itself. The network works."""
        if self.is_failing:
            self.recoveries += 1
            log.info("network.recovered host=%s", host)
        self.state = NetworkState.FINE
        self._clear()
        if url not in self._known:
            self._known[url] = None
            _shorten(self._known)

    def missed(self, host: str, url: str, now: float) -> None:
        """Note that this peer could not connect to a host."""
        if host not in self._missed:
            self._missed[host] = url
            self._misses += 1
            _shorten(self._missed)
            self._judge(now)

    def lacked_proxy(self, url: str) -> None:
        """Note a URL for which no proxy was alive here."""
        self.without_proxy = url

    def reached_by_other(self, host: str, url: str, now: float) -> None:
        """Note that another peer has reached a host that this peer missed."""
        self._by_others[host] = url
        _shorten(self._by_others)
        if self.state in (NetworkState.UNREACHABLE, NetworkState.GIVEN_UP):
            self._become(NetworkState.FAILING, now)
        else:
            self._judge(now)

    def others_fail(self, now: float) -> None:
        """Note that this peer reaches nothing, and that no other peer is in touch or all say that their networks fail.

        The network is then in doubt or, if it is known to fail, unreachable.
        """
        if not self._missed:
            return
        self._misses = max(self._misses, HOSTS_MISSED)
        if self.state is NetworkState.FAILING:
            self._by_others.clear()
            self._become(NetworkState.UNREACHABLE if self._wait_s > 0 else NetworkState.GIVEN_UP, now)
        else:
            self._judge(now)

    # --- tests ---------------------------------------------------------------------------------------------------

    def test_due_s(self, now: float) -> float | None:
        """Return the seconds until the next test, or None if no test is needed."""
        if self.is_failing:
            return max(0.0, self._test_at - now)
        return 0.0 if self.in_doubt and not self._tested else None

    def to_prove(self) -> list[str]:
        """Return the URLs of hosts that this peer has reached, the latest first, to prove its network by."""
        return [*self._known][:-4:-1]

    def to_test(self) -> list[str]:
        """Return the URLs of hosts to connect to in a test: hosts that work, or else hosts that were missed."""
        return [*self._known, *self._by_others.values()][-3:] or [*self._missed.values()][-3:]

    def test_failed(self, now: float) -> None:
        """Note a test that reached no host: from now on nothing is asked without another peer."""
        self._tested = True
        self._test_at = now + self._test_wait_s
        self._test_wait_s = min(2 * self._test_wait_s, TEST_MOST_S)
        self._judge(now)

    def give_up_s(self, now: float) -> float | None:
        """Return the seconds until the pause of an unreachable network ends, or None without a pause."""
        return max(0.0, self._since + self._wait_s - now) if self.state is NetworkState.UNREACHABLE else None

    def take_warning(self) -> str | None:
        """Return the next warning for a person, or None."""
        warning, self._warning = self._warning, None
        return warning

    def give_up(self, now: float) -> None:
        """End the pause of an unreachable network: failures count as those of the sites from now on."""
        self._become(NetworkState.GIVEN_UP, now)

    # --- inside --------------------------------------------------------------------------------------------------

    def _judge(self, now: float) -> None:
        if self.state is not NetworkState.FINE or not self.in_doubt:
            return
        if len(self._by_others) >= HOSTS_BY_OTHERS or (self._tested and self._by_others):
            self._become(NetworkState.FAILING, now)
        elif self._tested:
            self._become(NetworkState.UNREACHABLE if self._wait_s > 0 else NetworkState.GIVEN_UP, now)

    def _become(self, state: NetworkState, now: float) -> None:
        self.state = state
        self._test_wait_s = TEST_LEAST_S
        self._test_at = now + TEST_LEAST_S
        if state is NetworkState.UNREACHABLE:
            self._since = now
            log.warning("network.unreachable hosts=%d seconds=%.0f", self._misses, self._wait_s)
        elif state is NetworkState.FAILING:
            log.warning("network.failing hosts=%d reached_by_others=%d", self._misses, len(self._by_others))
            url = next(reversed(self._by_others.values()), "URL")
            self._warning = (
                "this peer does not reach sites that other peers reach, which fetch for it from now on; kadcrawl "
                f"doctor {url} says what is wrong"
            )
        else:
            log.warning("network.given_up hosts=%d", self._misses)

    def _clear(self) -> None:
        self._missed.clear()
        self._by_others.clear()
        self._misses = 0
        self._tested = False


def _shorten(urls: dict[str, None] | dict[str, str]) -> None:
    while len(urls) > HOSTS_KEPT:
        del urls[next(iter(urls))]
