"""The judges of a simulated crawl: one per promise, each a pure function over `Facts`.

They stand outside the peers. They know the access log of the web, the page lines on all disks that ever were, and the
contents of the peers' stores as `sim/observer.py` saw them. A judge returns one sentence per violation. An empty list
means that the promise was kept. The docstring of a judge states its promise.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import NamedTuple

from .site_treatment import USUAL_TREATMENT, SiteTreatment
from .wall import COOKIE

REPAIR_MOST_S = 30.0
"""Seconds after the last fault within which all records must have all their copies again."""
TOLD_S = 2.0
"""Seconds within which the copies of a site's owner, or the owner of a borrower, know that the site has refused."""
ORPHANED_S = 4.0
"""Seconds after the death of its lender in which a borrower's request may be under way: its lease, and an answer."""
LATE_S = 3.0
"""Seconds after the job's limit of time within which the last peer hears of it."""
UNCOUNTED = 1.25
"""Factor between the time in which some request of a recrawl is under way and the counted time. Peers that begin at the
same moment count it once, and a lost heartbeat delays the word of it."""
FORGOTTEN_S = 5.0
"""Seconds of counted time that a machine may forget when it stops."""
VISIT_LATE_S = 30.0
"""Seconds that faults may delay a visit to a page: a death is noticed, a cell synced, a site left alone."""
HEARD_S = 15.0
"""Seconds in which heartbeats bring an order to a peer that its wave has missed."""
UNDER_WAY_S = 5.0
"""Seconds that a request takes to its site at most, over a bad network."""
BUSY_S = 3.0
"""Seconds that a page of a site without a delay takes: most are slow there, and come three at a time."""
REFUSALS = (429, 503)
UNSURE = 503
STRIKES = 3
"""Refusals of a proxy in a row after which it counts as dead."""
SLACK_S = 1e-6
"""Tolerance for floating point when delays are compared."""

ROBOTS_PATH = "/robots.txt"
WALL = 302
"""The status of the answer of a site to a visitor without its cookie."""
SLOW_REPEATS_MAX, SLOW_FETCHES = 1, 200
"""Requests that slow peers may repeat: one, and one in so many."""
DOWN = 403
"""The status of all pages of a site that is down."""
GIVEN_UP = frozenset({"site_refused", "http_429"})
"""Failures of a URL whose site refuses it."""
UNCONNECTED = frozenset({"connect", "dns", "tls", "address_refused"})
"""Failures of a URL whose site was never asked."""


class Fetch(NamedTuple):
    """One request as the web's servers saw it."""

    at_s: float
    url: str
    site: str
    """The origin to which politeness applies. `url` begins with it."""
    status: int
    machine: int
    """The machine that sent the request."""
    lender: int | None = None
    """The lender, if the machine borrowed the page."""
    retry_after_s: float = 0.0
    """Seconds of the Retry-After in the answer, or 0."""
    rule: str = ""
    """The value of the request's header `RULE_HEADER`."""
    cookie: str = ""
    """The value of its header Cookie."""
    given: str = ""
    """The cookie that the answer gives."""
    is_form: bool = False
    """It is a form, and no request for a page."""
    owner: int | None = None
    """The owner of the site at that moment, if another machine sent the request."""
    via: str = ""
    """The IP address of the proxy through which it came."""
    asked_for: int | None = None
    """The machine that had another machine send the request."""

    @property
    def path(self) -> str:
        return self.url[len(self.site) :]


class ExpectedPage(NamedTuple):
    """The result of one URL in a correct crawl."""

    status: int
    """The status of the last answer."""
    fetches: int = 1
    """The number of requests that an owner needs that stays up."""


class Line(NamedTuple):
    """A page line on some disk."""

    url: str
    status: int | None
    """None if the URL was not fetched."""
    failed: str | None
    machine: int
    visit: int = 0
    """Visits to the page before this visit, in a job with a recrawl."""
    at_s: float | None = None
    """The instant of its answer, or None if the clock of the machine has jumped."""


class Outage(NamedTuple):
    """A period in which a site or a proxy is down."""

    site: str
    """The origin of the site, or the IP address of the proxy."""
    from_s: float
    until_s: float


class TurnedAway(NamedTuple):
    """A request for a page that never reached its site, because its proxy was down."""

    at_s: float
    machine: int
    proxy: str
    """The proxy's IP address."""


class StoppedSites(NamedTuple):
    """A period in which sites get no request by order of a person. It begins with the order."""

    sites: frozenset[str]
    """The origins of the sites."""
    from_s: float
    until_s: float
    all_heard: bool
    """The peer that gave the order says that all peers have heard of it."""
    knew: Sequence[tuple[int, float, float]] = ()
    """(machine, from, until) of each peer that was seen to know the order."""
    may_be_lost: bool = False
    """The peer that gave the order has died, and may have told nobody."""


class SlowedSites(NamedTuple):
    """A period in which sites are slowed down by order of a person. It begins with the order."""

    sites: frozenset[str]
    """The origins of the sites."""
    from_s: float
    until_s: float
    all_heard: bool
    """The peer that gave the order says that all peers have heard of it."""
    delay_s: float
    knew: Sequence[tuple[int, float, float]] = ()
    """(machine, from, until) of each peer that was seen to know the order."""
    may_be_lost: bool = False
    """The peer that gave the order has died, and may have told nobody."""


class Parting(NamedTuple):
    """A period in which machines did not reach all others. It ends when they agree again, after the network is
    healed."""

    from_s: float
    until_s: float
    few: frozenset[int]


class DashboardSight(NamedTuple):
    """A look at the dashboard of a machine, compared with the world."""

    asked_s: float
    told_s: float
    machine: int
    word: str
    """The verdict in one word."""
    says_done: bool
    unfinished: int
    """Reachable URLs that were not finished when the dashboard said that the crawl is done."""
    untrue: tuple[str, ...]
    """Figures that held at no moment between question and answer."""
    unshown: int
    """Peers of the swarm at the moment of the answer that were not shown."""
    ghosts: int
    """Peers shown that were not of the swarm at the moment of the answer."""
    is_last: bool
    """The look was after all was over."""


class End(NamedTuple):
    """A peer said that the crawl is over."""

    at_s: float
    machine: int
    unfinished: int
    """Reachable URLs that were DONE in no store and on no disk at that moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything seen of one crawl from outside."""

    truth: Mapping[str, ExpectedPage] = field(default_factory=dict)
    """Each reachable URL that robots.txt allows, with its expected result."""
    disallowed: Collection[str] = ()
    """URLs that are linked and that robots.txt, or a rule of the job, forbids."""
    delays: Mapping[str, float] = field(default_factory=dict)
    """Site -> seconds between two of its requests, as its rule or its robots.txt asks."""
    clocks: Mapping[str, str] = field(default_factory=dict)
    """Site -> its registered domain, in a job in which the hosts of a domain share a clock."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Site -> its IP address, in a job whose delay holds for an address too."""
    optional: Mapping[str, ExpectedPage] = field(default_factory=dict)
    """Each URL of a site of which only some are crawled, with its expected result."""
    refused: Collection[str] = ()
    """URLs that are linked and whose sites refuse every request."""
    refusals_max: int = 0
    """Refusals in a row after which the job gives a site up."""
    treatments: Mapping[str, SiteTreatment] = field(default_factory=dict)
    """Site -> the rule of the job for it."""
    only_slow: bool = False
    """The only faults are peers that stand still, all together or briefly."""
    cuts_off: bool = False
    """A limit of the job ends the crawl, and URLs may be left."""
    max_pages: int | None = None
    """The job's: the most visits to pages."""
    granted: int | None = None
    """The new limit, or what was granted when all knew it, if that is more, in a crawl whose limit was lowered."""
    pages_enough: bool = False
    """The crawl can end only when so many pages were visited: no grant of pages was lost, and there are enough."""
    forgotten: int = 0
    """Fetches of machines, and of their borrowers, that the machines had forgotten when they were back on old disks."""
    max_time_s: float | None = None
    """The job's: the seconds from the first request to the last."""
    again_s: float | None = None
    """The least seconds between two visits to a page, in a job with a recrawl."""
    recrawl_s: float | None = None
    """Seconds after a visit to a page at which the next visit is due, if the job keeps visits."""
    by_proxies: bool = False
    """The job says that all requests go through proxies."""
    proxies_down: Sequence[Outage] = ()
    turned_away: Sequence[TurnedAway] = ()
    """The requests that proxies turned away, in the order of arrival."""
    delay_s: float = 0.0
    """The job's delay, which holds for a site until its robots.txt has been read."""
    delay_factor: float = 0.0
    """The job's: a site rests for so many times the seconds of its last answer, ..."""
    delay_most_s: float = inf
    """... but no longer than this."""
    fetches: Sequence[Fetch] = ()
    """All requests in the order of arrival."""
    overs: Sequence[float] = ()
    """The instant at which each fetch was answered or lost its connection."""
    cut: Collection[int] = ()
    """The places of fetches whose answer never arrived whole, mostly because the machine was killed."""
    connections_max: int = 1
    """Requests that may be under way at a time to a site without a delay."""
    refuse_alone: bool = False
    """Each URL is a site, so a refusal leaves this URL alone, and not its host."""
    back_off_s: float = 0.0
    """Seconds for which a site is left alone after a first answer 429 or 503 without Retry-After."""
    back_off_max_s: float = inf
    """The longest such wait after further answers."""
    stops: Sequence[tuple[float, int]] = ()
    """(instant, machine) of each power cut, freeze, and full disk."""
    lines: Sequence[Line] = ()
    """The page lines of all disks, also of dead machines."""
    done: Mapping[str, int] = field(default_factory=dict)
    """Finished URLs of live peers -> a machine that has the URL as DONE. A key without a known URL is given in hex."""
    pending: Mapping[str, int] = field(default_factory=dict)
    """URLs that are still PENDING at a live peer in the end -> that machine."""
    changes: Mapping[str, int] = field(default_factory=dict)
    """Site -> the most changes of its owner that may have happened."""
    partings: Sequence[Parting] = ()
    claims: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Cell -> the machines that claim it when the swarm is quiet."""
    owners: Mapping[int, int] = field(default_factory=dict)
    """Cell -> the live machine XOR-nearest to it."""
    named: Sequence[tuple[int, int, int]] = ()
    """(asked, cell, answered): the machine that a peer named as the owner when the swarm was quiet."""
    live: int = 0
    """The number of peers up in the end."""
    repair_s: float | None = 0.0
    """Seconds from the last fault until every record stored then had all its copies. None: this never happened."""
    copies_wanted: int = 3
    """Holders of each record, by the job."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """URL or key in hex -> the number of its rightful holders that have it in the end."""
    ends: Sequence[End] = ()
    over: bool = True
    """True if the swarm ended by itself."""
    waited_s: float = 0.0
    """Seconds from the last fault to the end of the swarm, or to the end of the trial."""
    shared: Sequence[str] = ()
    """Observations of lent pages that two machines could fetch at a time, though no partition kept them apart."""
    overdue: Sequence[str] = ()
    """Observations of borrowers that went on although their lenders had long been silent."""
    unsafe: Sequence[str] = ()
    """Observations of links of finished pages that too few peers knew, in periods without faults."""
    peaks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Queue -> the greatest length ever seen, and its bound."""
    orders: int = 0
    """Orders to fetch failed URLs again, carried out or not."""
    not_retried: Sequence[str] = ()
    """Observations of URLs that an order did not have fetched again, when the swarm was at rest."""
    paused: Sequence[StoppedSites] = ()
    excluded: Sequence[StoppedSites] = ()
    excused: Collection[str] = ()
    """URLs that need not be crawled: those that a person has left out, and those that no page leads to that was fetched
    or has to be."""
    removed: Sequence[StoppedSites] = ()
    """Periods in which sites are out of scope by an order."""
    odd_outcomes: Sequence[str] = ()
    """Observations of left-out URLs that have no outcome, or too many."""
    dropped_in_vain: Sequence[str] = ()
    """Observations of URLs that an order to drop should have ended, or should not have."""
    unheard: Sequence[str] = ()
    """Observations of peers that do not know an order of a person in the end, or long after they are back."""
    slowed: Sequence[SlowedSites] = ()
    disturbed: Sequence[tuple[float, float]] = ()
    """Periods in which faults may keep the order of a person from its way."""
    dashboard: Sequence[DashboardSight] = ()
    """Looks at a dashboard."""
    calm_s: float = inf
    """The instant of the end of the last fault."""
    errors: Sequence[str] = ()

    def treatment(self, site: str) -> SiteTreatment:
        """Return the rule of the job for a site."""
        return self.treatments.get(site, USUAL_TREATMENT)

    def clock(self, site: str) -> str:
        """Return the name of the clock of a site: its domain, in a job whose hosts of a domain share a clock."""
        return self.clocks.get(site, site)

    def first_delay_s(self, site: str) -> float:
        """Return the seconds between two requests to a site until its robots.txt has been read."""
        own_s = self.treatment(site).delay_s
        return self.delay_s if own_s is None else own_s


def nothing_lost(facts: Facts) -> list[str]:
    """Every reachable URL has a page line with its last status on some disk, and no URL is still PENDING.

    If a limit ends the crawl, URLs may be left. So may those that a person leaves out, and what only these lead to.
    """
    statuses: defaultdict[str, set[int | None]] = defaultdict(set)
    for line in facts.lines:
        statuses[line.url].add(line.status)
    lost = []
    for url, page in facts.truth.items():
        if url in facts.excused:
            continue
        if url not in statuses:
            lost += [] if facts.cuts_off else [f"{url} was never crawled"]
        elif page.status not in statuses[url]:
            seen = sorted(map(str, statuses[url]))
            lost.append(f"{url} ended with {', '.join(seen)} instead of {page.status}")
    if facts.over and not facts.cuts_off:
        lost += [f"{url} is PENDING at {machine} although all is over" for url, machine in facts.pending.items()]
    return lost


def no_failure_of_a_peer(facts: Facts) -> list[str]:
    """No URL fails for want of a connection if its site answers, as then the fault was a peer's own."""
    answered = {fetch.site for fetch in facts.fetches}
    return [
        f"{line.url} failed at {line.machine} ({line.failed}), and its site has answered others"
        for line in facts.lines
        if line.failed in UNCONNECTED and "/".join(line.url.split("/")[:3]) in answered
    ]


def nothing_made_up(facts: Facts) -> list[str]:
    """Each DONE URL of a peer has a page line on some disk, and each page line has its fetch."""
    answered = {(fetch.url, fetch.status) for fetch in facts.fetches}
    lined = {line.url for line in facts.lines}
    made_up = [f"{url} is DONE at {machine} and on no disk" for url, machine in facts.done.items() if url not in lined]
    for line in facts.lines:
        if line.status is not None and (line.url, line.status) not in answered:
            made_up.append(f"{line.url} has a line with {line.status} at {line.machine} and was never answered so")
    return made_up


def one_fetch_per_owner(facts: Facts) -> list[str]:
    """A URL is fetched as often as its answers require, and as often again for each change of its owner.

    A fetch by another machine, or for another lender, shows such a change as well: the hand-over may take longer than
    the join of the newcomer. Each order to retry allows as many fetches of a URL that fails, and one more of a site
    that is down, but none of a page that was fetched. With a recrawl, each visit takes as many again.
    """
    pages = [fetch for fetch in facts.fetches if fetch.path != ROBOTS_PATH and not fetch.is_form]
    counts = Counter(fetch.url for fetch in pages if fetch.status != DOWN)
    refused = Counter(fetch.url for fetch in pages if fetch.status == DOWN)
    sites = {fetch.url: fetch.site for fetch in facts.fetches}
    fetchers: defaultdict[str, set[int]] = defaultdict(set)
    owners: defaultdict[str, set[int]] = defaultdict(set)
    for fetch in facts.fetches:
        fetchers[fetch.url].add(fetch.machine)
        owners[fetch.url].add(_owner(fetch))
    times: defaultdict[str, list[float]] = defaultdict(list)
    for fetch in pages:
        times[fetch.url].append(fetch.at_s)
    found = []
    for url in times:
        known = max(facts.changes.get(sites[url], 0), facts.changes.get(url, 0))
        changes = max(known, len(fetchers[url]) - 1, len(owners[url]) - 1)
        visits = _visits(facts, times[url])
        if counts[url] > _takes(facts, url) * (visits + changes) or refused[url] > (1 + facts.orders) * (1 + changes):
            fetched = counts[url] + refused[url]
            found.append(f"{url} was fetched {fetched} times, with {changes} changes of owner")
    return found


def _visits(facts: Facts, times: Sequence[float]) -> int:
    """Return the visits to a page that was fetched at these instants: one more after each wait for a recrawl."""
    again_s = facts.again_s
    return 1 if again_s is None else 1 + sum(later - earlier >= again_s - SLACK_S for earlier, later in pairwise(times))


def _takes(facts: Facts, url: str) -> int:
    """Return the number of fetches of a URL by an owner that stays up."""
    page = facts.truth.get(url) or facts.optional.get(url)
    if page is None:
        return facts.refusals_max if url in facts.refused else 1
    return page.fetches * (1 + facts.orders) if page.status >= 400 else page.fetches


def polite(facts: Facts) -> list[str]:
    """Two requests to one site are never closer than its delay, from any machines. For partitions see `parted`.

    With per-ip, neither are two requests to one IP address: the delay is that of the site that was asked first. With
    partition domain, neither are two requests to hosts of one domain: the delay is that of the host asked first.
    """
    found = [*_hurries(facts), *_hurried_addresses(facts)]
    return [sentence for sentence, excepted in found if not excepted]


def backs_off(facts: Facts) -> list[str]:
    """A site that answers 429 or 503 is not asked before its wait is over, from any machine.

    The wait is that of its Retry-After. Otherwise it is twice as long at each further refusal in a row. A refusal may
    be lost with a machine that stops within `TOLD_S`. Of a site without a delay, requests may go out for as long. With
    partition url, each URL is a site. With partition domain, the domain is left alone.
    """
    waits: dict[str, _Wait] = {}
    found = []
    for place, fetch in enumerate(facts.fetches):
        alone = fetch.url if facts.refuse_alone else facts.clock(fetch.site)
        wait = waits.get(alone)
        is_early = wait is not None and fetch.at_s < wait.until_s - SLACK_S
        if wait is not None and is_early and fetch.at_s > wait.from_s and not _unaware(facts, wait, fetch):
            found.append(
                f"{fetch.url} was asked for by {fetch.machine} at {fetch.at_s:.3f} s, {wait.until_s - fetch.at_s:.3f} "
                f"s before the wait of its site was over, which had refused {wait.refusal.machine} at "
                f"{wait.refusal.at_s:.3f} s"
            )
        # A 503 that comes through a proxy and says no time may be the proxy's own.
        is_unsure = fetch.via and fetch.status == UNSURE and not fetch.retry_after_s
        if fetch.status not in REFUSALS or is_unsure:
            if wait is not None and not is_early:
                waits[alone] = wait._replace(row=0)
        elif place not in facts.cut:
            # A refusal during the wait is the answer to a request that was under way as the wait began.
            until_s = wait.until_s if wait is not None and is_early else 0.0
            row = 0 if wait is None or is_early or _unaware(facts, wait, fetch) else wait.row
            if not is_early or fetch.retry_after_s:
                waits[alone] = _Wait.of(facts, place, row, until_s)
    return found


def adapts(facts: Facts) -> list[str]:
    """After an answer a site rests for the job's multiple of the answer's time, but no longer than the longest rest.

    The time of the answer may be lost with a machine that stops within `TOLD_S`. Failures and robots.txt do not count.
    """
    last: dict[str, tuple[_Wait, float]] = {}
    found = []
    for place, fetch in enumerate(facts.fetches if facts.delay_factor else ()):
        clock = facts.clock(fetch.site)
        wait, rest_s = last.get(clock, (None, 0.0))
        if wait is not None and fetch.at_s < wait.until_s - SLACK_S and not _unaware(facts, wait, fetch):
            found.append(
                f"{fetch.url} was asked for by {fetch.machine} at {fetch.at_s:.3f} s, only "
                f"{fetch.at_s - wait.over_s:.3f} s of {rest_s:.3f} s after {wait.refusal.url} was answered"
            )
        over_s = facts.overs[place]
        rest_s = min(facts.delay_factor * (over_s - fetch.at_s), facts.delay_most_s)
        if place in facts.cut or fetch.status >= 400 or fetch.path == ROBOTS_PATH:
            last.pop(clock, None)
        else:
            last[clock] = _Wait(fetch, over_s, over_s, over_s + rest_s, 0), rest_s
    return found


def within_connections(facts: Facts) -> list[str]:
    """A site without a delay has no more requests under way than the limit, from any machines. For partitions see
    `parted`.

    Requests that a borrower has under way when its lender dies do not count: the next owner cannot know of them
    (`kadcrawl.balance.leases`).
    """
    return [sentence for sentence, excepted in _crowds(facts) if not excepted]


def robots_obeyed(facts: Facts) -> list[str]:
    """A site's first request is for its robots.txt, and URLs that robots.txt forbids are never requested.

    The robots.txt of a site need not be asked for if a rule of the job ignores it.
    """
    forbidden = frozenset(facts.disallowed)
    known: set[str] = set()
    found = []
    for fetch in facts.fetches:
        if fetch.path == ROBOTS_PATH:
            known.add(fetch.site)
        elif fetch.url in forbidden:
            found.append(f"{fetch.url} is forbidden and was asked for by {fetch.machine}")
        elif fetch.site not in known and not facts.treatment(fetch.site).ignores_robots:
            found.append(f"{fetch.url} was asked for by {fetch.machine} before robots.txt")
    return found


def nothing_beyond_the_links(facts: Facts) -> list[str]:
    """Each URL requested is one that a followed link leads to, in the spelling that the rules of the job give it.

    Sites of which no URL may be fetched have judges of their own.
    """
    sites = {url[: url.index("/", len("http://"))] for url in (*facts.truth, *facts.optional)}
    known = {*facts.truth, *facts.disallowed, *facts.optional}
    return [
        f"{fetch.url} was asked for by {fetch.machine}, and no followed link leads there"
        for fetch in facts.fetches
        if fetch.path != ROBOTS_PATH and not fetch.is_form and fetch.site in sites and fetch.url not in known
    ]


def off_sites_left_alone(facts: Facts) -> list[str]:
    """A site that a rule of the job turns off is never asked for anything, by any machine."""
    return [
        f"{fetch.url} was asked for by {fetch.machine}, and its site is off"
        for fetch in facts.fetches
        if facts.treatment(fetch.site).off
    ]


def headers_of_the_site(facts: Facts) -> list[str]:
    """Each request has the headers that the rule for its site says, and none of another rule."""
    return [
        f"{fetch.url} was asked for by {fetch.machine} as {fetch.rule!r} and not as {said!r}"
        for fetch in facts.fetches
        if fetch.rule != (said := facts.treatment(fetch.site).header)
    ]


def through_proxies(facts: Facts) -> list[str]:
    """In a job with proxies no site is asked for anything without a proxy."""
    return [
        f"{fetch.url} was asked for by {fetch.machine} without a proxy"
        for fetch in facts.fetches
        if facts.by_proxies and not fetch.via
    ]


def dead_proxies_left_alone(facts: Facts) -> list[str]:
    """A machine that a proxy has turned away three times takes it for dead until the proxy works again.

    A request may be on its way to the proxy meanwhile. A machine that stops may forget, so it may try three more.
    """
    found = []
    for down in facts.proxies_down:
        tried: defaultdict[int, list[float]] = defaultdict(list)
        for at_s, machine, proxy in facts.turned_away:
            if proxy != down.site or not down.from_s <= at_s < down.until_s:
                continue
            times = tried[machine]
            if times and any(one == machine and times[-1] <= stop_s <= at_s for stop_s, one in facts.stops):
                times.clear()
            times.append(at_s)
            if len(times) > STRIKES and at_s > times[STRIKES - 1] + UNDER_WAY_S:
                found.append(
                    f"{machine} tried {proxy} again at {at_s:.3f} s, which had turned it away {len(times) - 1} times "
                    f"since {times[0]:.3f} s"
                )
    return found


def cookies_of_the_site(facts: Facts) -> list[str]:
    """A cookie goes back to the site that gave it, if a rule keeps its cookies, and its pages are never lent."""
    found = []
    for fetch in facts.fetches:
        keeps = facts.treatment(fetch.site).cookies
        host = fetch.site.removeprefix("http://")
        if COOKIE in fetch.cookie and not (keeps and fetch.cookie.startswith(f"{COOKIE}={host}/")):
            found.append(f"{fetch.url} was asked for by {fetch.machine} with the cookie {fetch.cookie}")
        elif keeps and fetch.lender is not None:
            found.append(f"{fetch.url} was lent by {fetch.lender} to {fetch.machine}, though its site keeps cookies")
    return found


def cookies_kept(facts: Facts) -> list[str]:
    """Once a site has given a cookie, each later request has one, also from the next owner.

    A cookie may be lost with a machine that stops within `TOLD_S`. Other machines know of it after as long, and so does
    any machine that asks for several pages at a time.
    """
    given: dict[str, _Wait] = {}
    found = []
    for place, fetch in enumerate(facts.fetches):
        gift = given.get(fetch.site)
        if gift is not None and not fetch.cookie and not _unaware(facts, gift, fetch):
            is_same = fetch.machine == gift.refusal.machine and facts.delays.get(fetch.site, facts.delay_s) > 0
            known_s = gift.over_s if is_same else gift.from_s
            if fetch.at_s > known_s + SLACK_S:
                found.append(
                    f"{fetch.url} was asked for by {fetch.machine} at {fetch.at_s:.3f} s without a cookie, and its "
                    f"site had given one to {gift.refusal.machine} at {gift.over_s:.3f} s"
                )
        if fetch.given and place not in facts.cut:
            over_s = facts.overs[place] if facts.overs else fetch.at_s
            given[fetch.site] = _Wait(fetch, over_s, over_s + TOLD_S, inf, 0)
    return found


def within_the_pages(facts: Facts) -> list[str]:
    """No more pages are fetched than the job's limit, each visit to a page counted. For partitions see `parted`.

    A machine that is back on an old disk may spend again what it has spent since.
    """
    fetched = {(line.url, line.visit) for line in facts.lines if line.status is not None}
    if facts.max_pages is None or len(fetched) <= facts.max_pages + facts.forgotten or facts.partings:
        return []
    return [f"{len(fetched)} pages were fetched, and {facts.max_pages} may be"]


def lowered_limit_kept(facts: Facts) -> list[str]:
    """Once all peers know a lower limit of pages, no further pages are granted beyond it. What is granted stays so."""
    if facts.granted is None or facts.partings:
        return []
    fetched = {(line.url, line.visit) for line in facts.lines if line.status is not None}
    most = facts.granted + facts.forgotten
    return [f"{len(fetched)} pages were fetched, and {most} may be by the lower limit"] if len(fetched) > most else []


def pages_used_up(facts: Facts) -> list[str]:
    """A crawl that a limit of pages ends uses the limit up, unless a peer with a grant was gone."""
    if facts.max_pages is None or not facts.pages_enough or not facts.over:
        return []
    ended = {(line.url, line.visit) for line in facts.lines}
    if len(ended) >= facts.max_pages:
        return []
    return [f"the crawl ended after {len(ended)} pages, and {facts.max_pages} may be fetched"]


def visits_in_order(facts: Facts) -> list[str]:
    """Of a page, each visit has a higher number than all earlier visits: the history is kept, whoever dies.

    A visit whose machine, or its lender, stops soon after may be made again under its number. Both sides of a partition
    may visit a page. Fingerprints count no visits.
    """
    last: dict[str, Line] = {}
    found = []
    told = sorted((line.at_s, line) for line in facts.lines if line.at_s is not None)
    for at_s, line in () if facts.partings else told:
        before = last.get(line.url)
        if before is not None and (line.visit < before.visit or _counts_again(facts, before, line)):
            found.append(
                f"visit {line.visit} of {line.url} was made by {line.machine} at {at_s:.3f} s, after visit "
                f"{before.visit} by {before.machine}"
            )
        last[line.url] = line
    return found


def _counts_again(facts: Facts, before: Line, line: Line) -> bool:
    """Return whether a later visit has the number of an earlier visit that all must know of."""
    if facts.recrawl_s is None or line.visit > before.visit or before.at_s is None or line.at_s is None:
        return False
    is_lost = any(before.at_s - ORPHANED_S <= at_s <= before.at_s + HEARD_S for at_s, _ in facts.stops)
    return line.at_s - before.at_s >= facts.recrawl_s and not is_lost


def within_the_time(facts: Facts) -> list[str]:
    """No request starts after the job's limit of time, but for the seconds in which peers hear of the time.

    Sides of a partition count by themselves. A recrawl does not count the time until the next visit is due, so only the
    time in which some request was under way is sure to count there, but for what stopped machines forget.
    """
    if facts.max_time_s is None or not facts.fetches:
        return []
    most_s, counted_s = facts.max_time_s + LATE_S, _since_the_first(facts)
    if facts.again_s is not None:
        if facts.partings:
            return []
        most_s = UNCOUNTED * facts.max_time_s + LATE_S + FORGOTTEN_S * len(facts.stops)
        counted_s = _under_way(facts)
    return [
        f"{fetch.url} was asked for by {fetch.machine} at {fetch.at_s:.3f} s, after {facts.max_time_s:g} s of crawl"
        for fetch, seconds in zip(facts.fetches, counted_s, strict=True)
        if seconds > most_s and not _parted_at(facts, fetch.at_s)
    ]


def _since_the_first(facts: Facts) -> Iterator[float]:
    """Yield the seconds between the first request and each request."""
    return (fetch.at_s - facts.fetches[0].at_s for fetch in facts.fetches)


def _under_way(facts: Facts) -> Iterator[float]:
    """Yield, for each request, the seconds before it in which some request was under way."""
    under_way_s = until_s = 0.0
    overs = facts.overs or [fetch.at_s for fetch in facts.fetches]
    for fetch, over_s in zip(facts.fetches, overs, strict=True):
        yield under_way_s - max(0.0, until_s - fetch.at_s)
        under_way_s += max(0.0, over_s - max(until_s, fetch.at_s))
        until_s = max(until_s, over_s)


def visited_again(facts: Facts) -> list[str]:
    """In a job with a recrawl each page is visited again soon after its period, while the crawl goes on.

    The pages of its site, or of its address with per-ip, may come first, each twice, and so may the waits after faults.
    """
    if facts.recrawl_s is None or not facts.fetches:
        return []
    ended_s = max(fetch.at_s for fetch in facts.fetches)
    times: defaultdict[str, list[float]] = defaultdict(list)
    clocks: dict[str, str] = {}
    urls: Counter[str] = Counter()
    longest_s: defaultdict[str, float] = defaultdict(float)
    for place, fetch in enumerate(facts.fetches):
        clock = facts.addresses.get(fetch.site, facts.clock(fetch.site))
        if place not in facts.cut:
            delay_s = max(facts.delays.get(fetch.site, 0.0), facts.delay_s, BUSY_S)
            if facts.delay_factor and facts.overs:
                answer_s = facts.overs[place] - fetch.at_s
                delay_s = max(delay_s, answer_s + min(facts.delay_factor * answer_s, facts.delay_most_s))
            longest_s[clock] = max(longest_s[clock], delay_s)
        if fetch.url in facts.truth and place not in facts.cut:
            clocks[fetch.url] = clock
            urls[clock] += fetch.url not in times
            times[fetch.url].append(fetch.at_s)
    found = []
    for url, asked in times.items():
        clock = clocks[url]
        most_s = facts.recrawl_s + 2 * urls[clock] * longest_s[clock] + VISIT_LATE_S
        waits = [later - earlier for earlier, later in pairwise([*asked, ended_s])]
        found += [f"{url} was left alone for {wait_s:.1f} s of {most_s:.1f} s" for wait_s in waits if wait_s > most_s]
    return found


def refusing_sites_given_up(facts: Facts) -> list[str]:
    """Each URL of a site that refuses everything fails, and few of them are asked for.

    An owner asks until the site has refused `refusals_max` times in a row. After each wait one more URL may ask, and
    after each order to retry.
    """
    ended = {line.url for line in facts.lines if line.failed in GIVEN_UP}
    left = () if facts.cuts_off else [url for url in facts.refused if url not in facts.excused]
    found = [f"{url} has not failed, though its site refuses everything" for url in left if url not in ended]
    refusals = Counter(fetch.site for fetch in facts.fetches if fetch.url in facts.refused)
    for site, count in refusals.items():
        waits = sum(url.startswith(site) for url in facts.refused)
        most = facts.refusals_max * (1 + facts.changes.get(site, 0)) + waits + facts.orders
        if count > most:
            found.append(f"{site} was asked {count} times and refused each time, which is more than {most}")
    return found


def pages_of_the_site(facts: Facts) -> list[str]:
    """Of a site with a limit on its URLs as many are crawled as the limit allows, and no more without a partition."""
    found = []
    asked = {fetch.url for fetch in facts.fetches if not fetch.is_form}
    ended = {line.url for line in facts.lines}
    for site, treatment in facts.treatments.items():
        urls = {url for url in facts.optional if url.startswith(f"{site}/")}
        if treatment.pages_max is None or not urls:
            continue
        most = treatment.pages_max
        if len(urls & asked) > most and not facts.partings:
            found.append(f"{len(urls & asked)} URLs of {site} were asked for, and {most} may be")
        least = min(most, len(urls.difference(facts.excused)))
        if facts.over and not facts.cuts_off and len(urls & ended) < least:
            found.append(f"only {len(urls & ended)} URLs of {site} ended, and {least} should")
    return found


def one_owner_when_quiet(facts: Facts) -> list[str]:
    """The live peer XOR-nearest to a cell is its only claimant in a quiet swarm, and all peers name it."""
    found = []
    for cell, owner in facts.owners.items():
        claiming = facts.claims.get(cell, ())
        if claiming != (owner,):
            found.append(f"cell {cell} is {owner}'s and claimed by {list(claiming)}")
    for asked, cell, answered in facts.named:
        if answered != facts.owners.get(cell):
            found.append(f"{asked} names {answered} as the owner of cell {cell}, not {facts.owners.get(cell)}")
    return found


def three_copies(facts: Facts) -> list[str]:
    """Soon after the last fault every record is on three live peers, and in the end on its rightful holders.

    If the job keeps another number of copies, it is on so many peers.
    """
    found = []
    wanted = min(facts.copies_wanted, facts.live)
    if facts.repair_s is None:
        found.append(f"what was stored at the last fault never had {wanted} copies again")
    elif facts.repair_s > REPAIR_MOST_S:
        found.append(f"{wanted} copies were back only {facts.repair_s:.1f} s after the last fault")
    for record, copies in facts.copies.items():
        if copies < wanted:
            found.append(f"{record} is with {copies} of its {wanted} holders")
    return found


def lent_to_one(facts: Facts) -> list[str]:
    """While a borrower may begin a page, neither the owner nor another borrower may."""
    return list(facts.shared)


def leases_end(facts: Facts) -> list[str]:
    """A borrower begins no further page of a loan soon after its lender has fallen silent."""
    return list(facts.overdue)


def copied_before_acknowledged(facts: Facts) -> list[str]:
    """A page is DONE in a quiet network only once all holders have its links."""
    return list(facts.unsafe)


def no_early_end(facts: Facts) -> list[str]:
    """No peer says that the crawl is over while a reachable URL is not finished. For partitions see `parted`."""
    return [
        f"{end.machine} said at {end.at_s:.3f} s that all is over, with {end.unfinished} URLs to go"
        for end in facts.ends
        if end.unfinished and not _parted_at(facts, end.at_s)
    ]


def dashboard_says_the_end(facts: Facts) -> list[str]:
    """A dashboard says that the crawl is done when it is, and not before. For partitions see `parted`."""
    found = [
        f"the dashboard of {one.machine} said at {one.told_s:.3f} s that all is done, with {one.unfinished} URLs to go"
        for one in facts.dashboard
        if one.unfinished and not _parted_at(facts, one.told_s)
    ]
    for one in facts.dashboard:
        if one.is_last and facts.over and not one.says_done and one.word != "resting":
            found.append(f"the dashboard of {one.machine} did not say that all is done in the end, but {one.word}")
    return found


def dashboard_shows_the_swarm(facts: Facts) -> list[str]:
    """A dashboard shows figures that hold during the look, and exactly the peers there are once faults are over.

    That is in the end, and from `HEARD_S` after the last fault.
    """
    found = [f"the dashboard of {one.machine} showed {untrue}" for one in facts.dashboard for untrue in one.untrue]
    for one in facts.dashboard:
        is_due = one.is_last or one.asked_s > facts.calm_s + HEARD_S
        if is_due and (one.unshown or one.ghosts):
            told = f"{one.unshown} peers too few and {one.ghosts} too many"
            found.append(f"the dashboard of {one.machine} showed {told} at {one.told_s:.3f} s")
    return found


def no_missing_end(facts: Facts) -> list[str]:
    """Every peer that is up says that the crawl is over, some time after the last fault."""
    return [] if facts.over else [f"{facts.waited_s:.0f} s after the last fault the swarm had not ended"]


def bounded_queues(facts: Facts) -> list[str]:
    """No queue ever holds more than its bound."""
    return [f"{name} held {most}, above {bound}" for name, (most, bound) in facts.peaks.items() if most > bound]


def retried(facts: Facts) -> list[str]:
    """An order to retry has each URL fetched again that failed before the order, if its site works by then."""
    return list(facts.not_retried)


def paused_sites_left_alone(facts: Facts) -> list[str]:
    """A paused site gets no request from a peer that knows the order, and soon from no peer.

    All know of it within `HEARD_S` of the order, or of the last fault that may have kept it from its way. A request
    that is under way may take `UNDER_WAY_S` to arrive.
    """
    return _asked_though(facts, "paused", facts.paused)


def excluded_sites_left_alone(facts: Facts) -> list[str]:
    """An excluded site gets no request from a peer that knows the order, and soon from no peer.

    The times are those of a paused site.
    """
    return _asked_though(facts, "excluded", facts.excluded)


def one_outcome_of_each(facts: Facts) -> list[str]:
    """Each URL of a left-out site that was found before the order has one outcome.

    It was fetched, or ended by the order. A change of its owner may cost one more outcome. An order ends no URL of
    another site.
    """
    return list(facts.odd_outcomes)


def pending_urls_dropped(facts: Facts) -> list[str]:
    """An order to drop ends the pending URLs of a site, and no URL that is found later.

    It ends them without a request. The times are those of a paused site.
    """
    return list(facts.dropped_in_vain)


def scope_kept(facts: Facts) -> list[str]:
    """A site out of scope gets no request from a peer that knows the order, and soon from no peer.

    The times are those of a paused site.
    """
    return _asked_though(facts, "out of scope", facts.removed)


def orders_known_to_all(facts: Facts) -> list[str]:
    """Each order of a person about sites that a peer knows in the end is known to all peers.

    A peer that has joined, was restarted, or was cut off knows the orders to slow sites down, and their lifts,
    `HEARD_S` after it is back.
    """
    return list(facts.unheard)


def _asked_though(facts: Facts, word: str, stops: Sequence[StoppedSites]) -> list[str]:
    """Return a sentence for each request to a stopped site by a machine that must have known the order."""
    return [
        f"{fetch.url} was fetched by {fetch.machine} at {fetch.at_s:.3f} s, {word} since {stop.from_s:.3f} s"
        for stop in stops
        for fetch in facts.fetches
        if fetch.site in stop.sites
        and stop.from_s < fetch.at_s < stop.until_s
        and fetch.at_s > known_at(facts, stop, fetch) + UNDER_WAY_S
    ]


def slowed_sites_left_alone(facts: Facts) -> list[str]:
    """Requests to a slowed site, from all machines, are as far apart as the order says.

    That holds for peers that know the order, and soon for all, as with `paused_sites_left_alone`. Who asks in place of
    an owner asks as the owner knows. For partitions see `parted`. Another delay of the job is an order about all sites
    whose rule has no delay.
    """
    found = []
    for order in facts.slowed:
        asked = [fetch for fetch in facts.fetches if fetch.site in order.sites and fetch.at_s < order.until_s]
        known = defaultdict[str, list[Fetch]](list)
        for fetch in asked:
            if fetch.at_s > _all_know_at(facts, order, fetch):
                known[facts.clock(fetch.site)].append(fetch)
        found += [
            f"{fetch.url} was fetched by {fetch.machine} at {fetch.at_s:.3f} s, {fetch.at_s - before.at_s:.3f} s after "
            f"{before.url} by {before.machine}, and {order.delay_s:g} s were ordered at {order.from_s:.3f} s"
            for fetches in known.values()
            for before, fetch in pairwise(fetches)
            if fetch.at_s - before.at_s < order.delay_s - SLACK_S and not _apart(facts, before, fetch)
        ]
    return found


def _all_know_at(facts: Facts, order: SlowedSites, fetch: Fetch) -> float:
    """Return the instant at which all machines that decide on a fetch must have known of an order."""
    deciding = {one for one in (fetch.machine, fetch.lender, fetch.owner) if one is not None}
    return max(known_at(facts, order, fetch._replace(machine=one)) for one in deciding) + UNDER_WAY_S


def known_at(facts: Facts, stop: StoppedSites | SlowedSites, fetch: Fetch) -> float:
    """Return the instant at which the machine of a fetch must have known of an order."""
    knew = [from_s for one, from_s, until_s in stop.knew if one == fetch.machine and from_s <= fetch.at_s <= until_s]
    faults = [until_s for from_s, until_s in facts.disturbed if stop.from_s <= until_s and from_s <= fetch.at_s]
    told = stop.from_s if stop.all_heard and not faults else max(stop.from_s, *faults, 0.0) + HEARD_S
    return min(inf if stop.may_be_lost else told, *knew, inf)


def no_errors(facts: Facts) -> list[str]:
    """No exception goes unhandled in any peer."""
    return list(facts.errors)


def slow_and_not_wrong(facts: Facts) -> list[str]:
    """Peers that are only slow, or stand still all together, fetch at most one page in two hundred twice."""
    repeated, most = duplicates(facts), SLOW_REPEATS_MAX + len(facts.fetches) // SLOW_FETCHES
    if not facts.only_slow or repeated <= most:
        return []
    return [f"{repeated} of {len(facts.fetches)} requests were repeated, though no peer was gone"]


Judge = Callable[[Facts], list[str]]

JUDGES: tuple[Judge, ...] = (
    nothing_lost,
    no_failure_of_a_peer,
    nothing_made_up,
    one_fetch_per_owner,
    polite,
    backs_off,
    adapts,
    within_connections,
    robots_obeyed,
    nothing_beyond_the_links,
    off_sites_left_alone,
    headers_of_the_site,
    through_proxies,
    dead_proxies_left_alone,
    cookies_of_the_site,
    cookies_kept,
    within_the_pages,
    pages_used_up,
    visits_in_order,
    within_the_time,
    visited_again,
    refusing_sites_given_up,
    pages_of_the_site,
    one_owner_when_quiet,
    three_copies,
    lent_to_one,
    leases_end,
    copied_before_acknowledged,
    no_early_end,
    no_missing_end,
    dashboard_says_the_end,
    dashboard_shows_the_swarm,
    bounded_queues,
    retried,
    slow_and_not_wrong,
    paused_sites_left_alone,
    excluded_sites_left_alone,
    one_outcome_of_each,
    pending_urls_dropped,
    scope_kept,
    orders_known_to_all,
    slowed_sites_left_alone,
    lowered_limit_kept,
    no_errors,
)


def judge(facts: Facts) -> dict[str, list[str]]:
    """Return the violations found, by the name of the judge. Judges that found none are left out."""
    verdicts = {one.__name__: one(facts) for one in JUDGES}
    return {name: found for name, found in verdicts.items() if found}


def failed(fetches: Sequence[Fetch], given_up: Collection[str] = ()) -> list[Fetch]:
    """Return the last fetch of each page whose site was down then, unless the page was fetched before.

    Pages in `given_up` are of sites that refuse everything: they fail for that, whatever they were before. An answer
    that only asks for a cookie or a form is no page.

    A page that an owner asks for again, because it does not know of the answer, is no failure to all peers.
    """
    last: dict[str, Fetch] = {}
    answered: set[str] = set()
    walled = {fetch.site for fetch in fetches if fetch.given or fetch.cookie}
    for fetch in fetches:
        if fetch.status == DOWN:
            last[fetch.url] = fetch
        else:
            last.pop(fetch.url, None)
            if fetch.status < 500 and not (fetch.site in walled and fetch.status == WALL and not fetch.cookie):
                answered.add(fetch.url)
    return [fetch for url, fetch in last.items() if url not in answered and url not in given_up]


def awaited(
    fetches: Sequence[Fetch], latest: float, outages: Collection[Outage], given_up: Collection[str] = ()
) -> list[str]:
    """Return the URLs that failed before the latest order, and were not fetched again although their site works."""
    return [
        fetch.url
        for fetch in failed(fetches, given_up)
        if fetch.at_s < latest and not any(outage.site == fetch.site and outage.until_s >= latest for outage in outages)
    ]


def duplicates(facts: Facts) -> int:
    """Return the number of requests for pages that had been fetched often enough before.

    For partitions see `parted`. Requests that were cut short do not count as fetches, see `cut_short`.
    """
    return sum(not excused for excused in _repeats(facts))


def cut_short(facts: Facts) -> int:
    """Return the number of page requests that died with their machine or were given up. They are made again."""
    return sum(facts.fetches[place].url in facts.truth for place in facts.cut)


def parted(facts: Facts) -> int:
    """Return the number of early requests, repeated fetches and early ends that a partition excuses.

    They are allowed, because neither side can know the clocks and URLs of the other side.
    """
    early = sum(1 for end in facts.ends if end.unfinished and _parted_at(facts, end.at_s))
    unknowing = sum(excused for found in (_hurries(facts), _crowds(facts)) for _, excused in found)
    return early + unknowing + sum(_repeats(facts))


class _Wait(NamedTuple):
    """The wait of a site that has refused a request, or whose answer was slow."""

    refusal: Fetch
    over_s: float
    """The instant at which it was answered."""
    from_s: float
    """The instant from which all who ask the site know of the wait."""
    until_s: float
    row: int
    """Refusals in a row without Retry-After."""

    @classmethod
    def of(cls, facts: Facts, place: int, row: int, least_s: float) -> "_Wait":
        """Return the wait after the refusal at this place, with `row` refusals before."""
        fetch = facts.fetches[place]
        over_s = facts.overs[place] if facts.overs else fetch.at_s
        delay_s = facts.delays.get(fetch.site, facts.delay_s)
        if not fetch.retry_after_s:
            row += 1
        wait_s = fetch.retry_after_s or min(facts.back_off_s * 2 ** (row - 1), facts.back_off_max_s)
        return cls(fetch, over_s, over_s + (0.0 if delay_s else TOLD_S), max(least_s, over_s + wait_s), row)


def _unaware(facts: Facts, wait: _Wait, fetch: Fetch) -> bool:
    """Return whether the machine that sent this fetch need not know of the wait.

    A borrower that is refused after the death of its lender has nobody to tell. Neither has a machine that asks the
    site for an owner without a network.
    """
    refusal, until_s = wait.refusal, wait.over_s + TOLD_S
    stopped = any(
        (one == refusal.machine and refusal.at_s <= at_s <= until_s)
        or (one in (refusal.lender, refusal.owner) and refusal.at_s - ORPHANED_S <= at_s <= until_s)
        for at_s, one in facts.stops
    )
    return stopped or _apart(facts, refusal, fetch)


def _hurries(facts: Facts) -> Iterator[tuple[str, bool]]:
    """Yield each pair of requests to one clock that are too close, and whether a partition excuses them."""
    recent: defaultdict[str, list[tuple[Fetch, float]]] = defaultdict(list)
    """Clock -> its last requests, each with the delay of its site."""
    answered: set[str] = set()
    heard: set[str] = set()
    """Sites whose robots.txt a machine has read, because a page was requested after it.

    The machine that requested robots.txt may have died before it read the answer.
    """
    longest_s = max(facts.delay_s, *facts.delays.values(), *map(facts.first_delay_s, facts.treatments), 0.0)
    for fetch in facts.fetches:
        if fetch.path != ROBOTS_PATH and fetch.site in answered:
            heard.add(fetch.site)
        first_s = facts.first_delay_s(fetch.site)
        delay_s = facts.delays.get(fetch.site, first_s) if fetch.site in heard else first_s
        clock = facts.clock(fetch.site)
        lately = [pair for pair in recent[clock] if fetch.at_s - pair[0].at_s < longest_s - SLACK_S]
        recent[clock] = [*lately, (fetch, delay_s)]
        if fetch.path == ROBOTS_PATH and fetch.status == 200:
            answered.add(fetch.site)
        for before, its_s in lately:
            asked_s = delay_s if before.site == fetch.site else its_s
            if fetch.at_s - before.at_s >= asked_s - SLACK_S:
                continue
            sentence = (
                f"{fetch.url} was asked for by {fetch.machine} at {fetch.at_s:.3f} s, only "
                f"{fetch.at_s - before.at_s:.3f} s of {asked_s:g} s after {before.machine} had asked for {before.url}"
            )
            yield sentence, _excused(facts, before, fetch)


def _hurried_addresses(facts: Facts) -> Iterator[tuple[str, bool]]:
    """Yield each pair of requests to two sites of one address that are too close, and whether a partition excuses
    them.
    """
    recent: defaultdict[str, list[Fetch]] = defaultdict(list)
    for fetch in facts.fetches:
        if (address := facts.addresses.get(fetch.site)) is None:
            continue
        close = [one for one in recent[address] if fetch.at_s - one.at_s < facts.first_delay_s(one.site) - SLACK_S]
        recent[address] = [*close, fetch]
        for before in close:
            if before.site != fetch.site:
                sentence = (
                    f"{fetch.url} was asked for by {fetch.machine} at {fetch.at_s:.3f} s, only "
                    f"{fetch.at_s - before.at_s:.3f} s after {before.machine} had asked for {before.url} at {address}"
                )
                yield sentence, _apart(facts, before, fetch)


def _crowds(facts: Facts) -> Iterator[tuple[str, bool]]:
    """Yield each request to a site that was at its limit, and whether a partition excuses the request."""
    under_way: defaultdict[str, list[tuple[float, Fetch]]] = defaultdict(list)
    for fetch, over_s in zip(facts.fetches, facts.overs, strict=bool(facts.overs)):
        if facts.delays.get(fetch.site, facts.delay_s) > 0 or fetch.path == ROBOTS_PATH:
            continue
        clock = facts.clock(fetch.site)
        others = [(until_s, one) for until_s, one in under_way[clock] if until_s > fetch.at_s]
        under_way[clock] = [*others, (over_s, fetch)]
        if len(others) >= (facts.treatment(fetch.site).connections or facts.connections_max):
            askers = sorted(one.machine for _, one in others)
            sentence = (
                f"{fetch.url} was asked for by {fetch.machine} at {fetch.at_s:.3f} s, while {len(others)} requests "
                f"of its site were under way by {askers}"
            )
            yield sentence, any(_apart(facts, one, fetch) for _, one in others)


def _repeats(facts: Facts) -> Iterator[bool]:
    """Yield, for each request too many, whether a partition excuses it."""
    before: defaultdict[str, list[Fetch]] = defaultdict(list)
    for place, fetch in enumerate(facts.fetches):
        if fetch.url in facts.truth:
            known = [one for one in before[fetch.url] if not _may_be_again(facts, one, fetch)]
            if fetch.status == DOWN:
                continue
            if len(known) >= _takes(facts, fetch.url):
                yield any(_apart(facts, one, fetch) for one in known)
            if place not in facts.cut:
                before[fetch.url].append(fetch)


def _may_be_again(facts: Facts, before: Fetch, fetch: Fetch) -> bool:
    """Return whether a recrawl may fetch a page at the second of two instants, after a visit at the first."""
    return facts.again_s is not None and fetch.at_s - before.at_s >= facts.again_s - SLACK_S


def _excused(facts: Facts, before: Fetch, fetch: Fetch) -> bool:
    """Return whether the requests come from different sides of a partition."""
    return _divided(facts, fetch.at_s, _decider(before), _decider(fetch))


def _apart(facts: Facts, before: Fetch, fetch: Fetch) -> bool:
    """Return whether a partition lay between the owners or between the machines.

    The machines count too, because a lender takes back loans of a borrower that it does not reach.
    """
    return _excused(facts, before, fetch) or _divided(facts, fetch.at_s, before.machine, fetch.machine)


def _divided(facts: Facts, at_s: float, one: int, other: int) -> bool:
    return any(
        parting.from_s <= at_s <= parting.until_s and (one in parting.few) != (other in parting.few)
        for parting in facts.partings
    )


def _owner(fetch: Fetch) -> int:
    """Return the lender, or the machine itself. A borrower knows what its lender knows, so the lender decides."""
    return fetch.machine if fetch.lender is None else fetch.lender


def _decider(fetch: Fetch) -> int:
    """Return the machine that decided on the fetch. It may have asked another to send the request."""
    return _owner(fetch) if fetch.asked_for is None else fetch.asked_for


def _parted_at(facts: Facts, at_s: float) -> bool:
    return any(parting.from_s <= at_s <= parting.until_s for parting in facts.partings)
