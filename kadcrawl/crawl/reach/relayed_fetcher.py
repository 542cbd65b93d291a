"""`RelayedFetcher` is a `Fetching` for a peer's own pages: what this peer cannot connect to, other peers fetch for it.

A request that fails before it goes out, because of a name, a route, an address, a certificate or proxies, is made by
another peer at once. It uses the same slot of the site, so the site sees one request by one clock, whatever peer makes
it. The answer comes back as it was received. If the other peer cannot connect either, the failure stands, and says how
many peers have tried. If no other peer has time to try, the URL goes back and waits. `NetworkHealth` learns from each
request. A peer whose network fails does not try by itself any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from kadcrawl.crawl.fetch.fetcher import Fetcher, FormFetching, always
from kadcrawl.crawl.fetch.memory_slots import MemorySlots
from kadcrawl.crawl.fetch.result import BY_PEER, FetchError, FetchResult, RelayedAnswer, not_asked
from kadcrawl.crawl.reach.network_health import NetworkHealth, NetworkState
from kadcrawl.crawl.reach.opinions import HostFailure, Opinions
from kadcrawl.crawl.reach.relay_client import RelayClient, Unanswered
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.limits import Limits
from kadcrawl.urls import site_of

OPINIONS_MAX = 2
"""Peers that try beside a peer that does not know whether its own network works."""
REASONS_BY_PEER = BY_PEER | {FetchError.NO_PROXY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """The other peers that may be asked to make a request."""

    live: Callable[[], list[Contact]]
    """Returns the other peers that are in touch with this peer."""
    has_any: Callable[[], bool] = lambda: False
    """Returns whether this peer knows of any other peer, in touch or not."""


class PageFetching(Protocol):
    """The interface of a fetcher, as a crawler uses it."""

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        page: str = "",
    ) -> FetchResult:
        """Return the result of one GET of a canonical URL. `page` is the URL for whose site the request is made."""


class WatchedFetcher:
    """A `Fetching` whose results teach the health of this peer's network."""

    def __init__(self, fetching: FormFetching, health: NetworkHealth, now: Callable[[], float]) -> None:
        self._fetching = fetching
        self._health = health
        self._now = now

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        page: str = "",
        form: bytes = b"",
    ) -> FetchResult:
        """Return the result of one request, as `Fetcher.fetch` does. `page` does not matter here."""
        result = await self._fetching.fetch(url, extra_headers, may_send=may_send, memory_slots=memory_slots, form=form)
        host = site_of(url, "host")
        if result.status is not None:
            self._health.reached(host, url)
        elif result.error in BY_PEER:
            self._health.missed(host, url, self._now())
        elif result.error is FetchError.NO_PROXY:
            self._health.lacked_proxy(url)
        return result


class RelayedFetcher:
    """Fetches URLs directly, or through other peers."""

    def __init__(
        self,
        direct: WatchedFetcher,
        fetcher: Fetcher,
        relay: RelayClient,
        health: NetworkHealth,
        opinions: Opinions,
        *,
        helpers: Helpers,
        works: Callable[[float], Awaitable[bool | None]],
        random: Random,
        limits: Limits,
        now: Callable[[], float],
    ) -> None:
        """`works` finds out whether the network has worked since a given second (`NetworkProof`).

        `fetcher` reads the answers that other peers received, and `now` is the world's clock."""
        self._direct = direct
        self._fetcher = fetcher
        self._relay = relay
        self._health = health
        self._opinions = opinions
        self._helpers = helpers
        self._works = works
        self._random = random
        self._limits = limits
        self._now = now

    async def fetch(
        self,
        url: str,
        extra_headers: Sequence[tuple[str, str]] = (),
        may_send: Callable[[], bool] = always,
        *,
        memory_slots: MemorySlots | None = None,
        page: str = "",
    ) -> FetchResult:
        """Return the result of one GET of a canonical URL, as `Fetcher.fetch` does.

        `page` is the URL of this peer's site for which the request is made, by default `url`.
        """
        if memory_slots is None:
            memory_slots = MemorySlots()
            try:
                return await self.fetch(url, extra_headers, may_send, memory_slots=memory_slots, page=page)
            finally:
                memory_slots.release()
        host, recoveries = site_of(url, "host"), self._health.recoveries
        request = _Request(url, page or url, extra_headers, may_send, memory_slots, host, recoveries)
        by_peers = self._health.state is NetworkState.FAILING or self._opinions.helper_of(request.host, self._now())
        if by_peers and self._helpers.live():
            return await self._by_peers(request, None)
        failed = await self._by_itself(request)
        if not _may_be_our_fault(failed):
            return failed
        if (failure := self._opinions.failure_of(request.host, self._now())) is not None:
            return replace(_for_the_reason_of(failure, failed), tried_by=1 + failure.peers)
        if not self._helpers.live() and not self._helpers.has_any():
            return failed  # This is the only peer of the swarm.
        return await self._by_peers(request, failed)

    async def _by_itself(self, request: "_Request") -> FetchResult:
        result = await self._direct.fetch(
            request.url, request.fields, request.may_send, memory_slots=request.memory_slots
        )
        if result.status is not None:
            self._opinions.forget(request.host)
        return result

    async def _by_peers(self, request: "_Request", failed: FetchResult | None) -> FetchResult:
        """Let other peers try, one after the other, until the answer is final. `failed` is this peer's own try."""
        started_at, started = self._now(), asyncio.get_running_loop().time()
        helpers = self._ordered(request.host)
        missed: list[RelayedAnswer] = []
        asked, without_network, is_final = 0, 0, False
        for helper in helpers:
            if is_final:
                break
            asked += 1
            try:
                async with self._relay.place(helper):
                    if not request.may_send():
                        return replace(failed or _nothing(request.url, started_at), error=FetchError.NOT_SENT)
                    answer = await self._relay.fetch(
                        helper, request.page, request.url, request.fields, self._limits.body_bytes_max
                    )
            except Unanswered as unanswered:
                self._opinions.cannot_help(helper.id, unanswered.unable, self._now())
                without_network += unanswered.unable == "network"
                if unanswered.may_have_asked:
                    # The site may have had the other peer's request until now, so its clock runs from now on, and an
                    # adaptive delay follows the whole time.
                    unsure = failed or _nothing(request.url, started_at)
                    now = asyncio.get_running_loop().time()
                    return replace(unsure, error=FetchError.UNSURE, first_byte_at=now, seconds=now - started)
                continue
            if answer.status is None and answer.error in BY_PEER:
                missed.append(answer)
                is_final = len(missed) >= OPINIONS_MAX or await self._settles(answer, started_at)
                continue
            if answer.status is not None:
                self._opinions.reached(request.host, helper.id, self._now())
                self._health.reached_by_other(request.host, request.url, self._now())
            at = datetime.fromtimestamp(started_at, UTC)
            return await self._fetcher.received(request.url, request.fields, answer, at, started, request.memory_slots)
        works = await self._works(started_at) if failed is not None or missed else None
        if failed is not None and self._health.recoveries != request.recoveries:
            # The network works again, and the proof is later than the miss, which says nothing about the site.
            failed = await self._by_itself(request)
            if not _may_be_our_fault(failed):
                return failed
        if missed and not self._counts(missed, works, without_network):
            without_network, missed = without_network + len(missed), []
        if not missed and works is not True and without_network == asked and (asked or not self._helpers.live()):
            self._health.others_fail(self._now())
        if failed is None and len(missed) < OPINIONS_MAX:
            # Too few others have tried, so this peer tries although its network seems to fail.
            failed = await self._by_itself(request)
            if not _may_be_our_fault(failed):
                return failed
        return self._unreached(request, failed, missed, works)

    async def _settles(self, answer: RelayedAnswer, since: float) -> bool:
        """Return whether the failure of another peer and that of this peer are enough to blame the site."""
        works = await self._works(since)
        return works is True or (works is None and answer.proven)

    @staticmethod
    def _counts(missed: Sequence[RelayedAnswer], works: bool | None, without_network: int) -> bool:
        """Return whether failures of others say anything about the site.

        They do not if no network is known to work, and one is known to fail.
        """
        return any(answer.proven for answer in missed) or works is True or (works is None and not without_network)

    def _unreached(
        self, request: "_Request", failed: FetchResult | None, missed: Sequence[RelayedAnswer], works: bool | None
    ) -> FetchResult:
        """Return the failure of a URL that no peer that was asked could connect to."""
        now = self._now()
        result = failed or _nothing(request.url, now)
        if not missed and result.error is FetchError.NO_PROXY:
            return result  # The crawler waits for proxies, its own or those of another peer.
        if not missed and works is True and self._is_only_network(now):
            return result  # This is the only peer that can try.
        if not missed:
            may_wait = self._health.state is not NetworkState.GIVEN_UP and self._opinions.may_wait(request.host, now)
            return replace(result, error=FetchError.NO_OPINION) if may_wait else result
        is_proven = any(answer.proven for answer in missed) or works is True
        error = missed[-1].error
        assert error is not None, "a request that is missed has an error"
        failure = HostFailure(len(missed), error, missed[-1].detail)
        if is_proven:
            self._opinions.missed(request.host, failure, now)
        result = _for_the_reason_of(failure, failed) if failed is not None else _with(failure, result)
        doubtful = not is_proven and self._health.state is not NetworkState.GIVEN_UP
        return replace(result, tried_by=len(missed) + (failed is not None), doubtful=doubtful)

    def _is_only_network(self, now: float) -> bool:
        """Return whether all other peers in touch have said lately that their networks fail."""
        others = self._helpers.live()
        return bool(others) and all(self._opinions.lacks_network(peer.id, now) for peer in others)

    def _ordered(self, host: str) -> list[Contact]:
        """Return the peers to ask: first the peer that last reached the host, then those that are asked least."""
        now = self._now()
        helpers = sorted(
            (peer for peer in self._helpers.live() if self._opinions.can_help(peer.id, now)), key=lambda peer: peer.id
        )
        self._random.shuffle(helpers)
        proven = self._opinions.helper_of(host, now)
        return sorted(helpers, key=lambda peer: (peer.id != proven, self._relay.users(peer)))


@dataclass(slots=True)
class _Request:
    """One request, as the crawler asks for it."""

    url: str
    page: str
    fields: Sequence[tuple[str, str]]
    may_send: Callable[[], bool]
    memory_slots: MemorySlots
    host: str
    """The host with its port, to which what is learned applies."""
    recoveries: int
    """The recoveries of this peer's network before the request."""


def _may_be_our_fault(result: FetchResult) -> bool:
    """Return whether another peer may reach what this peer did not, and no request has gone out."""
    return result.status is None and result.error in REASONS_BY_PEER


def _for_the_reason_of(failure: HostFailure, failed: FetchResult) -> FetchResult:
    """Return this peer's failure, with the reason of the other peers if its own says nothing about the site."""
    return _with(failure, failed) if failed.error in (FetchError.NO_PROXY, FetchError.ADDRESS_REFUSED) else failed


def _with(failure: HostFailure, result: FetchResult) -> FetchResult:
    return replace(result, error=failure.error, detail=failure.detail)


def _nothing(url: str, now: float) -> FetchResult:
    """Return the result of no request, as no other peer had time."""
    return not_asked(url, FetchError.NO_OPINION, now, asyncio.get_running_loop().time())
