"""`ClockHolder` gets the leases of shared clocks for the requests of one peer, and gives each request its turn.

A request begins with `enter`, which finds the clock of its URL. If the clock is not free for its site now, the site
waits, and is called when its turn comes. One task asks the owners of the clocks, many clocks in one message. A peer
that keeps a clock itself needs no message.

Tests: tests/peer/test_shared_clocks.py
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from kadcrawl.crawl.clocks.addresses import Addresses
from kadcrawl.crawl.clocks.clock_names import host_clock, ip_clock
from kadcrawl.crawl.clocks.leased_clocks import AskedClock, LeasedClocks
from kadcrawl.crawl.clocks.shared_clock import Pace, SharedClock
from kadcrawl.crawl.fetch.fetcher import always
from kadcrawl.crawl.fetch.pinned_address import pin
from kadcrawl.crawl.frontier.frontier import Frontier
from kadcrawl.crawl.links.forwarder import Owners
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.cell_messages import RobotsRecord
from kadcrawl.link.wire.clock_messages import CLOCKS_MAX, ClocksLeased, LeaseClocks
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.system.event import Event
from kadcrawl.system.spaced_batches import SpacedBatches
from kadcrawl.urls import host_of, origin_of, site_of

if TYPE_CHECKING:
    from kadcrawl.crawl.clocks.clock_host import ClockHost

LEASE_DEADLINE_S = 5.0
"""Seconds for the answer to a question about clocks, below the length of a lease."""
IDLE_CLOCKS_MAX = 10_000
"""Clocks remembered before those without use are forgotten."""
LOOK_AGAIN_S = 0.001
"""Least seconds between two looks at a clock."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waiter:
    """A site that may have to wait for a clock."""

    key: Hashable
    park: Callable[[], None]
    """Called when the site must wait."""
    call: Callable[[], None]
    """Called when the turn of the site has come, or when the site has nothing to ask any more."""
    has_request: Callable[[], bool] = always
    """Returns whether the site still has something to ask: its URL may have been lent, or finished by another peer."""


def key_of(frontier: Frontier, site: str) -> Hashable:
    """Return the key by which a site of a frontier waits."""
    return id(frontier), site


def waiter_of(frontier: Frontier, site: str, wake: Callable[[], None]) -> Waiter:
    """Return a site of a frontier as it waits for a clock. `wake` tells the crawler that the site may go on."""

    def call() -> None:
        frontier.unpark(site)
        wake()

    return Waiter(key_of(frontier, site), lambda: frontier.park(site), call, lambda: frontier.has_request(site))


class ClockUse:
    """One request on a clock."""

    def __init__(self, clock: SharedClock, host: str, address: str) -> None:
        self.clock = clock.name
        self.host = host
        self.address = address
        """The address that the request goes to, or empty if the clock is not one of an address."""
        self._clock = clock
        self.rest_s = 0.0
        """Seconds for which the clock rests after the request, counted from its end."""

    def may_send(self) -> bool:
        """Return whether the request may still be sent."""
        return self._clock.may_send(asyncio.get_running_loop().time())

    def rest(self, seconds: float) -> None:
        """Let the clock rest for so many seconds from now on. Without this no request has gone out."""
        self.rest_s = seconds


class ClockHolder:
    """The leases of one peer."""

    def __init__(
        self,
        owners: Owners,
        client: LinkClient,
        partitioner: Partitioner,
        limits: Limits,
        site_settings: SiteSettings,
        *,
        addresses: Addresses | None,
        host: Callable[[], "ClockHost | None"],
        learn_rules: Callable[[RobotsRecord], None] | None = None,
    ) -> None:
        """Give each address a clock with `addresses`, or else each host. `host` keeps the clocks of this peer's cells.

        A leaf keeps no clocks. `learn_rules` takes the rules that come with leases. Without it none are asked for.
        """
        self._owners = owners
        self._client = client
        self._partitioner = partitioner
        self._limits = limits
        self._site_settings = site_settings
        self._addresses = addresses
        self._host = host
        self._learn_rules = learn_rules
        self._clocks: dict[str, SharedClock] = {}
        self._leased = LeasedClocks()
        self._waiters: dict[Hashable, Waiter] = {}
        """The sites that wait, or have a promise."""
        self._due: list[tuple[float, str]] = []
        self._due_at: dict[str, float] = {}
        """Clock -> its earliest place in `_due`."""
        self._forget_above = IDLE_CLOCKS_MAX
        self._changed = Event()
        self.questions = 0
        """Questions about clocks so far that went to other peers, each with up to `CLOCKS_MAX` clocks."""

    async def find(self, url: str) -> tuple[str, str, OSError | None]:
        """Return (clock, address, error) of a canonical URL: no clock and the error if its host cannot be looked up."""
        if self._addresses is None:
            return host_clock(site_of(url, "host")), "", None
        try:
            address = await self._addresses.find(host_of(url))
        except OSError as error:
            return "", "", error
        return ip_clock(address), address, None

    def pin(self, url: str, address: str, error: OSError | None) -> None:
        """Pin the next request of the current task to an address, if the clocks are those of addresses."""
        if self._addresses is not None:
            pin(host_of(url), address, error)

    @property
    def is_by_address(self) -> bool:
        """True if each IP address has a clock."""
        return self._addresses is not None

    @asynccontextmanager
    async def turn(self, url: str, delay_s: float, wait_s: float) -> AsyncIterator[Callable[[], bool] | None]:
        """Wait at most `wait_s` seconds for the turn of a request that no frontier knows, and make it in the block.

        Yields a function that returns whether the request may still be sent, or None if its turn has not come.
        """
        clock, address, error = await self.find(url)
        self.pin(url, address, error)
        if error is not None:
            yield always
            return
        loop, called = asyncio.get_running_loop(), Event()
        give_up_at = loop.time() + wait_s
        waiter = Waiter(object(), called.clear, called.set, lambda: loop.time() < give_up_at)
        while True:
            with self.enter(clock, url, address, delay_s, waiter) as use:
                if use is not None:
                    yield use.may_send
                    return
            try:
                async with asyncio.timeout_at(give_up_at):
                    await called.wait()
            except TimeoutError:
                break
        yield None

    def missed(self, use: ClockUse) -> None:
        """Ask a host at its next address from now on, as this one cannot be connected to."""
        if self._addresses is not None:
            self._addresses.missed(use.host, use.address)

    @contextmanager
    def enter(
        self,
        clock: str,
        url: str,
        address: str,
        delay_s: float,
        waiter: Waiter,
        *,
        is_known: bool = False,
        page: str = "",
    ) -> Iterator[ClockUse | None]:
        """Begin a request on a clock, and end it with the block. Yield None if the site has to wait for its turn.

        `is_known`: the delay of the site is known, as its robots.txt has been read. `page` is a URL whose robots.txt
        the owner of the clock may read in place of this peer, or empty.
        """
        shared = self._shared(clock)
        loop = asyncio.get_running_loop()  # At the end of a world there is none any more.
        now = loop.time()
        pace = Pace(delay_s, self.connections(url), is_known, "" if self._learn_rules is None else page)
        if not shared.may_begin(waiter.key, pace, now):
            self._wait(shared, pace, waiter, now)
            yield None
            return
        if shared.begin(waiter.key, pace):
            self._call(waiter.key)
        self._touch(shared, now)  # Another site may be next at once.
        use = ClockUse(shared, host_of(url), address)
        use.rest(delay_s)  # If the block is left by an exception, a request may have gone out.
        try:
            yield use
        finally:
            now = loop.time()
            shared.end(now + use.rest_s)
            self._touch(shared, now)

    def may_enter(self, url: str, key: Hashable) -> bool:
        """Return whether `enter` would let the site with this key make a request to a host without a delay now."""
        pace = Pace(0.0, self.connections(url), is_known=True)
        return self._of_host(url).may_begin(key, pace, asyncio.get_running_loop().time())

    def wait(self, url: str, waiter: Waiter) -> None:
        """Let a site wait for its turn at a host without a delay, as `enter` does."""
        pace = Pace(0.0, self.connections(url), is_known=True)
        self._wait(self._of_host(url), pace, waiter, asyncio.get_running_loop().time())

    def rest(self, clock: str, seconds: float) -> None:
        """Let a clock rest for so many seconds from now on, as its last request turns out to demand."""
        if (shared := self._clocks.get(clock)) is not None:
            now = asyncio.get_running_loop().time()
            shared.rest(now + seconds)
            self._touch(shared, now)

    def is_free(self, clock: str) -> None:
        """Ask for a clock at once, as its owner says that it is free."""
        shared = self._clocks.get(clock)
        if shared is not None:
            now = asyncio.get_running_loop().time()
            shared.is_free_now(now)
            self._touch(shared, now)

    async def run(self) -> None:
        """Ask the owners of clocks, and call the sites in turn, until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as questions:

            def begin(owner: Contact, asked: list[AskedClock]) -> None:
                asked = [*asked, *self._leased.company(owner.id, len(asked), loop.time())]
                for start in range(0, len(asked), CLOCKS_MAX):
                    questions.create_task(self._ask_one(owner, asked[start : start + CLOCKS_MAX]), name="lease clocks")

            batches = SpacedBatches(self._limits.batch_spacing_s, begin)
            try:
                while True:
                    asked: list[AskedClock] = []
                    looked_at: list[SharedClock] = []
                    now = loop.time()
                    while self._due and self._due[0][0] <= now:
                        at, name = heappop(self._due)
                        if self._due_at.get(name) != at:
                            continue
                        del self._due_at[name]
                        shared = self._clocks[name]
                        self._drop_idle_waiters(shared)
                        if (question := shared.question(now)) is not None:
                            asked.append((shared, question))
                        if (site := shared.next_site(now)) is not None:
                            self._call(site)
                        looked_at.append(shared)
                    for shared in looked_at:
                        self._touch(shared, now, now + LOOK_AGAIN_S)
                    if unknown := self._ask(asked, batches):
                        questions.create_task(self._find_owners(unknown, batches), name="find owners of clocks")
                    self._forget_idle(now)
                    self._changed.clear()
                    timeout = None if not self._due else max(0.0, self._due[0][0] - loop.time())
                    try:
                        async with asyncio.timeout(timeout):
                            await self._changed.wait()
                    except TimeoutError:
                        pass
            finally:
                batches.close()

    # --- inside ----------------------------------------------------------------------------------------------------

    def connections(self, url: str) -> int:
        """Return the requests that may be under way at a time to the site of a URL, if it has no delay."""
        if self._site_settings.is_adaptive:
            return 1
        return self._site_settings.connections(site_of(url, "host")) or self._limits.site_connections_max

    def _of_host(self, url: str) -> SharedClock:
        return self._shared(host_clock(site_of(url, "host")))

    def _shared(self, clock: str) -> SharedClock:
        shared = self._clocks.get(clock)
        if shared is None:
            shared = self._clocks[clock] = SharedClock(clock)
        return shared

    def _wait(self, shared: SharedClock, pace: Pace, waiter: Waiter, now: float) -> None:
        shared.wait(waiter.key, pace)
        self._waiters[waiter.key] = waiter
        waiter.park()
        self._touch(shared, now)

    def _call(self, site: Hashable) -> None:
        waiter = self._waiters.pop(site, None)
        if waiter is not None:
            waiter.call()

    def _drop_idle_waiters(self, shared: SharedClock) -> None:
        """Let no site wait for its turn that has nothing to ask any more. Its turn would keep the clock from others."""
        while (site := shared.first_waiting) is not None:
            waiter = self._waiters.get(site)  # The site may have waited for another clock since, and been called.
            if waiter is not None and waiter.has_request():
                return
            shared.leave(site)
            self._call(site)

    def _touch(self, shared: SharedClock, now: float, least: float = 0.0) -> None:
        """Look at a clock again when something is due there, at the second `least` at the earliest."""
        at = max(shared.due(now), least)
        if at < self._due_at.get(shared.name, inf):
            self._due_at[shared.name] = at
            heappush(self._due, (at, shared.name))
            self._changed.set()

    def _forget_idle(self, now: float) -> None:
        if len(self._clocks) > self._forget_above:
            idle = [name for name, shared in self._clocks.items() if shared.is_idle(now)]
            for name in idle:
                del self._clocks[name]
                self._due_at.pop(name, None)
            self._forget_above = max(IDLE_CLOCKS_MAX, 2 * len(self._clocks))

    def _ask(self, asked: list[AskedClock], batches: SpacedBatches[Contact, AskedClock]) -> list[AskedClock]:
        """Ask the known owners of these clocks. Return the clocks whose owners must be looked up."""
        by_owner: dict[Contact, list[AskedClock]] = defaultdict(list)
        unknown: list[AskedClock] = []
        for pair in asked:
            owner = self._owners.known_owner(self._partitioner.cell(pair[0].name))
            (unknown if owner is None else by_owner[owner]).append(pair)
        self._put(by_owner, batches)
        return unknown

    async def _find_owners(self, asked: list[AskedClock], batches: SpacedBatches[Contact, AskedClock]) -> None:
        """Look up the owners of these clocks, and ask them."""
        by_owner: dict[Contact, list[AskedClock]] = defaultdict(list)
        cells = [self._partitioner.cell(shared.name) for shared, _ in asked]
        owners = await asyncio.gather(*map(self._owners.owner, cells))
        for owner, pair in zip(owners, asked, strict=True):
            by_owner[owner].append(pair)
        self._put(by_owner, batches)

    def _put(self, by_owner: dict[Contact, list[AskedClock]], batches: SpacedBatches[Contact, AskedClock]) -> None:
        """Ask each owner with as few messages as possible.

        A clock with a delay is asked for at once, as others may wait for it. Shares of connections wait for company.
        """
        for owner, group in by_owner.items():
            is_urgent = owner.id == self._owners.me.id or any(question.delay_s for _, question in group)
            batches.put(owner, group, hurries=is_urgent)

    async def _ask_one(self, owner: Contact, asked: list[AskedClock]) -> None:
        loop = asyncio.get_running_loop()
        message = LeaseClocks(self._owners.me, [question for _, question in asked])
        host, sent_at = self._host(), loop.time()
        try:
            if owner.id == self._owners.me.id and host is not None:
                answer = await host.lease(message)
            else:
                self.questions += 1
                answer = await self._client.ask(owner, message, ClocksLeased, LEASE_DEADLINE_S)
        except RemoteError as error:
            log.info("clock.unheard owner=%s why=%s", owner, error.why)
            self._owners.suspect(owner)
            for shared, _ in asked:
                shared.unheard(loop.time())
                self._leased.note(shared, owner.id)
                self._touch(shared, loop.time())
            return
        for (shared, question), turn in zip(asked, answer.turns, strict=False):
            is_asked_for = turn.robots is not None and question.page and turn.robots.origin == origin_of(question.page)
            if turn.robots is not None and is_asked_for and self._learn_rules is not None:
                self._learn_rules(turn.robots)
            # A leaf asks its full peer about a clock of an unknown owner, and must not give a lease back to another.
            named = owner if turn.lease else turn.owner
            if named is not None and named.id != self._owners.me.id:
                self._owners.learn_owner(self._partitioner.cell(shared.name), named)
            shared.heard(turn, sent_at, loop.time())
            self._leased.note(shared, owner.id)
            self._touch(shared, loop.time())
        for shared, _ in asked[len(answer.turns) :]:
            shared.unheard(loop.time())
            self._leased.note(shared, owner.id)
            self._touch(shared, loop.time())
