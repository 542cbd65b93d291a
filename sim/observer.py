"""The observer of one simulated crawl: sees all machines at once, touches none, and writes down the `Facts`.

It looks just before and just after every moment of the fault plan, and a few times a second in between. From the peers
it takes the records they hold and the cells they claim. The *rightful* holders of a cell it computes itself, from the
IDs of the standing machines. A machine *stands* while it is up, not frozen, has a job and is not leaving.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from math import inf
from urllib.parse import urlsplit

from kadcrawl.balance.leases import LEASE_S
from kadcrawl.crawl.scope.partitioner import Partitioner
from kadcrawl.keys import Cell, Key, anchor, backup_key, cell_of
from kadcrawl.leaf.leaf import Leaf
from kadcrawl.peer import Peer
from kadcrawl.store.schema import is_pending
from kadcrawl.urls import host_of, site_of

from . import sometimes
from .histories import Histories
from .holders import copies, rightful
from .judges import End, ExpectedPage, Facts, Fetch, Line, Outage, Parting, TurnedAway, failed
from .lending import SeenLoans
from .machines import Machine, Machines
from .plan import RECOVERY_S, UNDISTURBING, Event, Kind
from .relays import SeenRelays
from .retries import SeenRetries
from .scene import Scene
from .trails import SeenTrails
from .web_server import WebServer

TOGETHER_S = 1.0
"""Seconds within which two kills count as together: no peer has noticed the first at the second."""
ORPHANED_S = LEASE_S + 0.1
"""Seconds for which borrowers may go on after the death of their lender, because they cannot know of it."""
SETTLED_S = 3.5
"""Seconds after which the first machines know each other and have the records of the machine that was alone.

That machine releases a cell only when the page under way there has come. This may take a second after the last machine
has joined (seed 21 with fingerprints).
"""
AMPLE = 10
"""A limit of so many pages for each URL never ends a crawl, whatever the grants of dead peers take with them."""
JOINING_S = 5.0
"""Seconds for which a machine counts as a newcomer."""

Standing = dict[int, int]
"""Machine -> ID of its peer."""


class Observer:
    """Sees one world."""

    def __init__(
        self,
        machines: Machines,
        scene: Scene,
        server: WebServer,
        connections_max: int,
        first_fault_at: float = inf,
        back_off_s: tuple[float, float] = (0.0, 0.0),
        *,
        only_slow: bool = False,
        excused: Callable[[], Collection[str]] = tuple,
        relays: SeenRelays,
    ) -> None:
        """`connections_max` limits the requests under way at a time to a site without a delay.

        No fault happens before the instant `first_fault_at`, in virtual seconds. `back_off_s` are the first and the
        longest wait of a site that refuses requests. With `only_slow` peers only stand still (`Plan.only_slows`).
        `excused` returns the URLs that need not be crawled, by orders of a person. `relays` are the requests that peers
        make for others.
        """
        job, web = scene.job, scene.web
        self._treatments, self._refused = scene.treatments, scene.refused
        self._back_off_s, self._only_slow, self._excused = back_off_s, only_slow, excused
        self._relays = relays
        self._stops: list[tuple[float, int]] = []
        self._first_fault_at = first_fault_at
        self._machines = machines
        self._server = server
        self._log = server.log
        self._overs = server.overs
        self._connections_max = connections_max
        self._out_of_reach: dict[int, float] = {}
        """Place of a request in the log -> the instant since when the owner of its site may not know it."""
        self._job = job
        self._place = Partitioner(job.partition, job.bits).locate
        self._delays = web.delays(job.delay_s)
        self._disallowed = web.disallowed()
        self._truth = {url: ExpectedPage(one.status, one.fetches_max) for url, one in web.truth(job.retries).items()}
        self._keys = {url: self._place(url).key for url in self._truth}
        self._cuts_off = job.max_time_s is not None or (
            job.max_pages is not None and job.max_pages < AMPLE * len(self._truth)
        )
        after_s = job.recrawl_after_s
        self._again_s = after_s if after_s is None or job.history == "exact" else after_s - after_s / job.grains
        """The least seconds between two visits to a page. A fingerprint is of the beginning of its epoch."""
        self._copied_at: dict[int, float] = {}
        """Machine -> the instant of the last copy of its disk."""
        self._forgotten = 0
        """Fetches that machines back on an old disk do not know of."""
        self._undisturbed = True
        self._least_pages = inf
        """The lowest limit of pages that a person has ordered."""
        """No event has taken a grant of pages away so far."""
        self._optional = {url: ExpectedPage(one.status, one.fetches_max) for url, one in scene.optional.items()}
        known = [*self._truth, *self._disallowed, *scene.refused, *self._optional]
        self._urls: dict[bytes, str] = {self._place(url).key: url for url in known}
        self._histories = Histories((self._place(url).cell, Key(key)) for key, url in self._urls.items())
        self.addresses = {origin: web.address(host_of(f"{origin}/")) or "" for origin in web.origins if job.per_ip}
        """Site -> its IP address, in a job whose delay holds for an address."""
        self._clocks = {one: one.partition(".")[2] for one in web.origins} if job.partition == "domain" else {}
        """Site -> its domain, if the hosts of a domain share a clock."""
        self._sites = {origin: self._place(f"{origin}/").cell for origin in web.origins}
        urls = self._urls.values() if job.partition == "url" else ()
        self._owned = self._sites | {url: self._place(url).cell for url in urls}
        """Site -> its cell. Where each URL is a site, also of the URLs."""
        self._cells = tuple(
            dict.fromkeys([*self._sites.values(), *(self._place(url).cell for url in self._urls.values())])
        )
        bits = job.bits
        self._placements = {
            cell: (anchor(cell, bits), *(backup_key(cell, number, bits) for number in range(1, job.copies)))
            for cell in self._cells
        }
        self._fetches: list[Fetch] = []
        self._addresses: dict[str, int] = {}
        self._stood: dict[int, tuple[int, int]] = {}
        self._owners: dict[Cell, int] = {}
        self._changes: Counter[str] = Counter()
        self._partings: list[Parting] = []
        self._proxies = [urlsplit(url).hostname or "" for url in job.proxies]
        self._proxies_down: list[Outage] = []
        self._kills: list[tuple[float, tuple[int, ...], sometimes.Holders]] = []
        self._lost_sites: dict[int, tuple[set[str], int]] = {}
        """Killed machine -> the sites that it owned, and the number of fetches before."""
        self._newcomers: dict[int, float] = {}
        self._loans = SeenLoans()
        self._shared: dict[str, str] = {}
        """URL -> sentence that says when and by which machines a lent page could be fetched twice."""
        self._overdue: dict[tuple[str, int], str] = {}
        """Site and borrower -> sentence that says for how long the borrower goes on without a lease."""
        self._forgets = job.history == "bloom" and job.recrawl_after_s is not None
        """Finished URLs are forgotten after a time."""
        self._trails = SeenTrails(
            () if self._forgets else web.trails, self._keys, job.copies, lambda key: cell_of(key, job.bits)
        )
        self._unsafe: dict[str, str] = {}
        """URL that a finished page linked to -> sentence that says when too few peers knew it."""
        self._looked_at = 0.0
        self._killed_at: dict[int, float] = {}
        self._cut: set[int] = set()
        """The machines that a partition cuts off at the moment."""
        self._known_done: set[Key] = set()
        """Keys that were DONE on machines now dead, or when a peer last said that the crawl is over."""
        self._says_over: set[int] = set()
        self._ends: list[End] = []
        self._peaks: dict[str, tuple[int, int]] = {}
        self._holders_of: tuple[Standing, dict[Cell, tuple[int, ...]]] = ({}, {})
        self._to_repair: dict[Cell, set[Key]] | None = None
        self._repair_s: float | None = None
        self._quiet_at = 0.0
        self.retries = SeenRetries(scene.refused)
        self.met: Counter[str] = Counter()
        """Awkward moments of `sim.sometimes`."""
        self.kills = 0
        """Machines killed while they were up."""

    # --- while it happens ----------------------------------------------------------------------------------------

    def before(self, event: Event, now: float, *, begins: bool) -> None:
        """Record the state before an event of the plan begins, or ends."""
        self.look(now)
        self._undisturbed &= event.kind in UNDISTURBING
        if begins and event.kind in (Kind.KILL, Kind.FREEZE, Kind.FULL):
            self._stops += [(now, number) for number in event.machines]
        match event.kind:
            case Kind.KILL:
                self._before_kill([one for one in event.machines if self._is_up(one)], now)
            case Kind.RESTART:
                self._before_restart(event)
            case Kind.SNAPSHOT:
                self._copied_at.update(dict.fromkeys(event.machines, now))
            case Kind.JOIN:
                self._newcomers.update(dict.fromkeys(event.machines, now))
            case Kind.PROXY_DOWN if begins:
                self._proxies_down.append(Outage(self._proxies[int(event.amount)], now, now + event.for_s))
            case Kind.PARTITION | Kind.ONE_WAY if not begins:
                # Each side still has to notice the end of the partition.
                self._partings.append(Parting(event.at_s, now + RECOVERY_S, frozenset(event.machines)))
        if event.kind in (Kind.PARTITION, Kind.ONE_WAY):
            self._cut = set(event.machines) if begins else set()
        if event.kind in (Kind.PARTITION, Kind.ONE_WAY, Kind.LOSS, Kind.DELAY):
            # A peer that seems dead to some peers is no owner to them.
            self._changes.update(self._owned)
        elif event.kind in (Kind.FREEZE, Kind.SLOW):
            if begins:
                self._lose_sight(now, lambda fetch: fetch.machine in event.machines or fetch.lender in event.machines)
            self._changes.update(site for site, cell in self._owned.items() if self._owners.get(cell) in event.machines)

    def look(self, now: float) -> None:
        """Record all changes that peers make by themselves."""
        standing = self._follow_owners()
        lost = self._loans.look(now, ((number, self._peer(number)) for number in standing), self._leaves)
        if lost:
            origins = {origin for origin in self._sites if site_of(f"{origin}/", self._job.partition) in lost}
            self._changes.update(origins)
            # The lender may have gone on at once.
            self._lose_sight(self._looked_at, lambda fetch: fetch.lender is not None and fetch.site in origins)
        self._looked_at = now
        self._see_shared(standing, now)
        is_quiet = SETTLED_S <= now <= self._first_fault_at or (
            self._repair_s is not None and now >= self._quiet_at + RECOVERY_S
        )
        if is_quiet and not self._has_failures():
            unsafe = list(self._trails.unsafe(self._peer(number).store for number in standing))
            excused = self._excused() if unsafe else ()
            for url, known in unsafe:
                if url in excused:
                    continue
                seen = f"{url} was known to {known} at {now:.3f} s, when the page that links to it was done"
                self._unsafe.setdefault(url, seen)
        self._see_joins(standing, now)
        self._see_ends(now)
        for number in standing:
            for name, value, bound in queues(self._peer(number)):
                self._peaks[name] = (max(value, self._peaks.get(name, (0, 0))[0]), bound)
        if self._to_repair is not None and self._repair_s is None and self._repaired(standing):
            self._repair_s = now - self._quiet_at

    def calm(self, now: float) -> None:
        """Note that the last fault is over: from now on the swarm has to come to rest."""
        self.look(now)
        self._quiet_at = now
        self._to_repair = {}
        for number in self._standing():
            for cell in self._peer(number).store.cells:
                self._to_repair.setdefault(cell, set()).update(self._records_of(number, cell))

    @property
    def at_rest(self) -> bool:
        """All peers say that the crawl is over, and the rightful holders have all records."""
        if self._repair_s is None or not self._all_say_over:
            return False
        standing = self._standing()
        records = {number: self._records(number) for number in standing}
        wanted = min(self._job.copies, len(standing))
        return all(count == wanted for count in self._copies(standing, records).values())

    def look_back(self) -> bool:
        """Note the URLs that no order to retry had fetched again, and return whether any URL has failed."""
        self._follow_fetches()
        self.retries.look_back(self._fetches)
        return self._has_failures()

    def is_alone(self, number: int) -> bool:
        """Return whether no other standing machine has some record of this machine in as advanced a state."""
        standing = self._standing()
        if number not in standing:
            return False
        stores = [self._peer(other).store for other in standing if other != number]
        return any(
            all((store.state(key) or 0) < state for store in stores) for key, state in self._records(number).items()
        )

    def agrees(self, named: Iterable[tuple[int, int, int]]) -> bool:
        """Return whether all named owners are the rightful owners (see `Facts`)."""
        holders = self._holders(self._standing())
        return all(answered == holders[Cell(cell)][0] for _, cell, answered in named)

    def facts(self, now: float, named: Iterable[tuple[int, int, int]]) -> Facts:
        """Return all facts. `named` are the owners that peers named (see `Facts`)."""
        self._follow_fetches()
        standing = self._standing()
        holders = self._holders(standing)
        records = {number: self._records(number) for number in standing}
        lines = [
            Line(
                *(line["url"], line["status"], line.get("failed"), machine.number, line.get("visit", 0)),
                self._told_s(machine, line["fetched_at"]),
            )
            for machine in self._machines.machines.values()
            for line in machine.lines()
        ]
        # A URL may fail without a request, and be unknown here so far: the sitemap of a site that refuses everything.
        self._urls |= {self._place(line.url).key: line.url for line in lines}
        done: dict[str, int] = {}
        pending: dict[str, int] = {}
        for number, held in records.items():
            for key, state in held.items():
                (pending if is_pending(state) else done).setdefault(self._name(key), number)
        return Facts(
            truth=self._truth,
            disallowed=self._disallowed,
            delays=self._delays,
            clocks=self._clocks,
            addresses=self.addresses,
            refuse_alone=self._job.partition == "url",
            delay_s=self._job.delay_s,
            only_slow=self._only_slow,
            cuts_off=self._cuts_off,
            by_proxies=self._job.by_proxies,
            proxies_down=self._proxies_down,
            turned_away=[
                TurnedAway(at_s, self._addresses.get(peer, -1), proxy) for at_s, peer, proxy in self._server.turned_away
            ],
            max_pages=self._job.max_pages,
            pages_enough=self._pages_enough,
            forgotten=self._forgotten,
            max_time_s=self._job.max_time_s,
            again_s=self._again_s,
            recrawl_s=self._job.recrawl_after_s if self._job.history == "exact" else None,
            fetches=self._fetches,
            overs=[min(over_s, self._out_of_reach.get(place, inf)) for place, over_s in enumerate(self._overs)],
            cut=frozenset(self._server.cut),
            connections_max=self._connections_max,
            treatments=self._treatments,
            optional=self._optional,
            refused=self._refused,
            refusals_max=self._job.refusals_max,
            delay_factor=self._job.delay_factor,
            delay_most_s=self._job.delay_most_s,
            back_off_s=self._back_off_s[0],
            back_off_max_s=self._back_off_s[1],
            stops=self._stops,
            lines=lines,
            done=done,
            pending=pending,
            changes=self._changes,
            partings=self._partings,
            claims={
                cell: tuple(number for number in standing if self._peer(number).overlay.owns(cell))
                for cell in self._cells
            },
            owners={cell: names[0] for cell, names in holders.items()},
            named=list(named),
            live=len(standing),
            copies_wanted=self._job.copies,
            repair_s=self._repair_s,
            copies={self._name(key): count for key, count in self._copies(standing, records).items()},
            ends=self._ends,
            over=self._all_say_over,
            waited_s=now - self._quiet_at,
            shared=list(self._shared.values()),
            overdue=list(self._overdue.values()),
            unsafe=list(self._unsafe.values()),
            peaks=self._peaks,
            orders=self.retries.orders,
            not_retried=self.retries.not_retried,
            errors=self._machines.errors,
        )

    @property
    def _pages_enough(self) -> bool:
        """No grant of pages was lost, and the limit is the only reason for the crawl to end."""
        limit = self._job.max_pages
        if limit is None or self._job.max_time_s is not None or not self._undisturbed:
            return False
        goes_on = self._job.recrawl_after_s is not None and self._job.history == "exact"
        return goes_on or limit <= len(self._truth)

    @property
    def _all_say_over(self) -> bool:
        everyone = [*self._machines.live, *self._machines.leaves]
        return all(machine.number in self._says_over for machine in everyone)

    @property
    def pages(self) -> int:
        """The number of URLs of a complete crawl."""
        return len(self._truth)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of the web's sites."""
        return self._cells

    def number_of(self, peer_id: bytes) -> int:
        """Return the standing machine with this peer ID, or -1."""
        wanted = int.from_bytes(peer_id, "big")
        return next((number for number, one in self._standing().items() if one == wanted), -1)

    def _has_failures(self) -> bool:
        """Return whether some URL has failed at a site that was down, so that its links are not known."""
        if not self.retries.outages:
            return False
        self._follow_fetches()
        return bool(failed(self._fetches, self.retries.given_up))

    # --- what changes by itself ----------------------------------------------------------------------------------

    def _follow_owners(self) -> Standing:
        """Count a change for every site whose owner is another machine, or a new incarnation of the same."""
        standing = self._standing()
        stood = {number: (one, self._machines.machines[number].incarnations) for number, one in standing.items()}
        if stood != self._stood:
            anew = {number for number, one in stood.items() if self._stood.get(number) != one}
            self._stood = stood
            before, self._owners = self._owners, {cell: names[0] for cell, names in self._holders(standing).items()}
            for site, cell in self._owned.items():
                if cell in before and (self._owners.get(cell) != before[cell] or before[cell] in anew):
                    self._changes[site] += 1
            if not before:
                # The first machine crawls sites that others own by the time of the first look.
                self._follow_fetches()
                crawled = {(fetch.site, fetch.machine) for fetch in self._fetches}
                moved = {site for site, machine in crawled if self._owners.get(self._sites[site]) != machine}
                self._changes.update(moved)
        return standing

    def _see_joins(self, standing: Standing, now: float) -> None:
        arrived = [one for one, since in self._newcomers.items() if one in standing and now - since <= JOINING_S]
        if len(arrived) >= 2 and sometimes.two_joins_into_one_range(arrived, self._holders(standing)):
            self.met["two_joins_into_one_range"] += 1
            for one in arrived:
                del self._newcomers[one]

    def _see_shared(self, standing: Standing, now: float) -> None:
        peers = ((number, self._peer(number)) for number in standing)
        for url, ends, others in self._loans.shared(now, peers, self._leaves):
            # A partition that separates the lenders separates the work of their borrowers as well.
            if not any(self._parted(one, other, now) for one in ends for other in others):
                lent = f"{url} was lent, between {sorted(ends)}"
                seen = f"{lent}, and could be fetched by {sorted(others)} at {now:.3f} s"
                self._shared.setdefault(url, seen)
        peers = ((number, self._peer(number)) for number in standing)
        for site, number, seconds in self._loans.overdue(now, peers, self._leaves):
            self._overdue[site, number] = f"{number} goes on at {site} {seconds:.2f} s after the end of its lease"

    def _parted(self, one: int, other: int, now: float) -> bool:
        """Return whether a partition separates two machines, or did so lately."""
        fews = [self._cut, *(parting.few for parting in self._partings if parting.from_s <= now <= parting.until_s)]
        return any((one in few) != (other in few) for few in fews)

    def _see_ends(self, now: float) -> None:
        saying = {machine.number for machine in self._machines.live if self._serves(machine) and self._ended(machine)}
        saying.update(number for number, leaf in self._leaves if leaf.ended)
        if news := sorted(saying - self._says_over):
            unfinished = self.unfinished(now)
            self._ends += [End(now, number, unfinished) for number in news]
        self._says_over = saying

    def unfinished(self, now: float) -> int:
        """Return the number of reachable URLs left to do. A limit of the job may make it 0."""
        if self._may_end(now):
            return 0
        self._remember_done()
        if self._has_failures():
            # The links of a failed page are not known before an order has the page fetched again.
            return len(self.retries.awaited(self._fetches))
        excused = self._excused()
        return sum(key not in self._known_done for url, key in self._keys.items() if url not in excused)

    def _may_end(self, now: float) -> bool:
        """Return whether a limit of the job may have ended the crawl by now, so that URLs may be left."""
        if self._job.max_time_s is not None and now >= self._job.max_time_s:
            return True
        if not self._cuts_off or self._job.max_pages is None:
            return False
        self._follow_fetches()
        return not self._undisturbed or len(self._fetches) >= min(self._job.max_pages, self._least_pages)

    def change_pages(self, pages: float) -> None:
        """Note that a person may have changed the limit of pages."""
        self._least_pages = min(self._least_pages, pages)

    def _repaired(self, standing: Standing) -> bool:
        """Return whether the rightful holders have all records that were stored at the last fault.

        In a job that forgets, these are the records that some machine still has.
        """
        holders = self._holders(standing)
        known = {key for number in standing for key in self._records(number)} if self._forgets else None
        return all(
            (keys if known is None else keys & known) <= self._records_of(number, cell).keys()
            for cell, keys in (self._to_repair or {}).items()
            for number in holders.get(cell, ())
        )

    # --- what is done to them ------------------------------------------------------------------------------------

    def _before_kill(self, numbers: Collection[int], now: float) -> None:
        if not numbers:
            return
        self.kills += len(numbers)
        self._lose_sight(now, lambda fetch: fetch.lender in numbers)
        # With a second end the old disk is that of the first end, whatever was copied since.
        self._copied_at.update({number: self._killed_at[number] for number in numbers if number in self._killed_at})
        self._killed_at.update(dict.fromkeys(numbers, now))
        self._remember_done()
        standing = self._standing()
        holders = self._holders(standing)
        self._kills = [kill for kill in self._kills if now - kill[0] <= TOGETHER_S]
        self._kills.append((now, tuple(numbers), holders))
        together = {number for _, killed, _ in self._kills for number in killed}
        busy = {cell for number in standing for cell in self._busy(number)}
        first = {cell: names for cell, names in self._kills[0][2].items() if cell in busy}
        self.met["kill_owner_and_backup"] += sometimes.kill_owner_and_backup(together, first)
        self.met["kill_all_holders_but_one"] += sometimes.kill_all_holders_but_one(together, first)
        late = [cell for cell in busy if cell in holders and not self._is_open(holders[cell][0], cell)]
        self.met["kill_during_sync"] += sometimes.kill_during_sync(numbers, late, holders)
        for number in numbers:
            if number in standing:
                others = [self._records(other) for other in standing if other not in numbers]
                journaled = self._journaled(number)
                self.met["kill_between_journal_and_copy"] += sometimes.kill_between_journal_and_copy(journaled, others)
            own = {site for site, cell in self._sites.items() if cell in holders and holders[cell][0] == number}
            self._lost_sites[number] = (own, len(self._fetches))

    def _before_restart(self, event: Event) -> None:
        self._follow_fetches()
        for number in event.machines:
            if event.disk == "old":
                copied_at = self._copied_at.get(number, 0.0)
                self._forgotten += sum(
                    over_s >= copied_at and number in (fetch.machine, fetch.lender)
                    for fetch, over_s in zip(self._fetches, self._overs, strict=True)
                )
            own, since = self._lost_sites.pop(number, (set(), 0))
            if event.disk != "none" and sometimes.old_disk_after_move(number, own, self._fetches[since:]):
                self.met["old_disk_after_move"] += 1

    def sides_crawled(self) -> None:
        """Count, at the end, the partitions in which both sides crawled."""
        self._follow_fetches()
        for parting in self._partings:
            cut = parting._replace(until_s=parting.until_s - RECOVERY_S)
            self.met["crawl_on_both_sides"] += sometimes.crawl_on_both_sides(cut, self._fetches)

    # --- looking -------------------------------------------------------------------------------------------------

    @property
    def _leaves(self) -> list[tuple[int, Leaf]]:
        """The leaves that have started, by machine. Frozen leaves are left out, because they do nothing."""
        leaves = [(machine, machine.leaf) for machine in self._machines.leaves if not machine.frozen]
        return [(machine.number, leaf) for machine, leaf in leaves if leaf is not None and leaf.begun]

    def _lose_sight(self, now: float, of: Callable[[Fetch], bool]) -> None:
        """Note that from now on no owner can know of these requests, should they still be under way."""
        self._follow_fetches()
        for place, over_s in enumerate(self._overs):
            if over_s > now and of(self._fetches[place]):
                self._out_of_reach.setdefault(place, now)

    def _is_up(self, number: int) -> bool:
        machine = self._machines.machines.get(number)
        return machine is not None and machine.alive

    def _serves(self, machine: Machine) -> bool:
        # A peer with a full disk closes its store and waits to be started again.
        return machine.alive and machine.peer is not None and machine.peer.begun and not machine.disk.full

    def _ended(self, machine: Machine) -> bool:
        return machine.peer is not None and machine.peer.ended

    def _peer(self, number: int) -> Peer:
        peer = self._machines.machines[number].peer
        assert peer is not None, "a standing machine has a peer"
        return peer

    def _standing(self) -> Standing:
        standing = {}
        for machine in self._machines.live:
            peer = machine.peer
            if peer is not None and peer.begun and not (machine.disk.full or machine.host.frozen or peer.leaving):
                standing[machine.number] = peer.contact.number
        return standing

    def _holders(self, standing: Standing) -> dict[Cell, tuple[int, ...]]:
        """Return the rightful holders of each cell, its owner first."""
        if self._holders_of[0] != standing:
            self._holders_of = standing, rightful(standing, self._placements) if standing else {}
        return self._holders_of[1]

    def _records(self, number: int) -> dict[Key, int]:
        cells = self._peer(number).store.cells
        return {key: state for cell in cells for key, state in self._records_of(number, cell).items()}

    def _records_of(self, number: int, cell: Cell) -> dict[Key, int]:
        return self._histories.of_store(self._peer(number).store, cell)

    def _busy(self, number: int) -> Iterator[Cell]:
        """Yield the cells in which a machine has PENDING URLs."""
        return (cell for cell, tally in self._peer(number).store.cells.items() if tally.pending)

    def _is_open(self, number: int, cell: Cell) -> bool:
        return self._peer(number).components.frontier.is_open(cell)

    def _journaled(self, number: int) -> dict[Key, int]:
        """Return the records that are committed in a machine's journal."""
        return self._histories.on_disk(self._peer(number).store)

    def _remember_done(self) -> None:
        for machine in self._machines.live:
            if self._serves(machine):
                records = self._records(machine.number)
                self._known_done.update(key for key, state in records.items() if not is_pending(state))

    def _follow_fetches(self) -> None:
        for number, machine in self._machines.machines.items():
            self._addresses[machine.host.ip] = number
        for request in self._log[len(self._fetches) :]:
            site = f"http://{request.host}"
            asker = self._addresses.get(request.peer, -1)
            lender = self._loans.lender(site_of(f"{site}/", self._job.partition), asker, request.time)
            if lender is not None and request.time - self._killed_at.get(lender, -inf) < ORPHANED_S:
                self._out_of_reach[len(self._fetches)] = request.time
            seen = (request.time, site + request.path, site, request.status, asker, lender, request.retry_after_s)
            fetch = Fetch(*seen, request.rule, request.cookie, request.given, request.is_form, via=request.via)
            owner = self._owners.get(self._owned.get(fetch.url, self._owned.get(site, Cell(-1))))
            asked_for = self._relays.asker(request.peer, fetch.url, request.time)
            self._fetches.append(
                fetch._replace(
                    owner=None if owner == asker else owner,
                    asked_for=None if asked_for is None else self._addresses.get(asked_for),
                )
            )

    def _told_s(self, machine: Machine, told: str) -> float | None:
        """Return the instant that a machine tells, or None if its clock has jumped."""
        return None if machine.clock_s else datetime.fromisoformat(told).timestamp() - self._machines.begins_at

    def _copies(self, standing: Standing, records: dict[int, dict[Key, int]]) -> dict[Key, int]:
        return copies(records, self._holders(standing), self._job.bits)

    def _name(self, key: bytes) -> str:
        return self._urls.get(key) or key.hex()


def queues(peer: Peer) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each bounded queue of a peer, its length, and its bound."""
    limits, parts = peer.config.limits, peer.components
    yield "requests in flight", parts.crawler.in_flight, limits.fetches_max
