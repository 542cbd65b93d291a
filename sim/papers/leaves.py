"""Masters and slaves: what it saves that a site keeps its leaf, by real peers and leaves (P3: semi-distributed swarm).

Each crawl is done twice in the same world: with sites dealt by the two-level hash, as full peers do it, and with the
largest site for whichever leaf asks first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unittest import mock

from kadcrawl.balance.leaf_sites import PLACES, TURN_S, LeafSites
from kadcrawl.lending import leaf_host
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits

from ..plan import LEAF_FIRST
from .alike_web import AlikeWeb
from .experiment import Figure, Finding, Progress, Result, Series, Table
from .swarm import Swarm, simulated

ROBOTS_PATH = "/robots.txt"
FETCHES_MAX = 8
"""Requests of one peer, or leaf, at a time: weak machines, so that the leaves have their part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafWorld:
    """A swarm with leaves, and its web."""

    name: str
    peers: int
    leaves: int
    sites: int
    pages: int
    """Pages of each site."""
    delay_s: float
    answer_s: float
    goes_at_s: float | None = None
    """The second at which one leaf is killed."""


WORLDS = (
    LeafWorld(name="1 peer, 4 leaves, delay 1 s", peers=1, leaves=4, sites=64, pages=50, delay_s=1.0, answer_s=0.1),
    LeafWorld(
        name="1 peer, 4 leaves, delay 1 s, a leaf killed after 20 s",
        peers=1,
        leaves=4,
        sites=64,
        pages=50,
        delay_s=1.0,
        answer_s=0.1,
        goes_at_s=20.0,
    ),
    LeafWorld(name="1 peer, 4 leaves, no delay", peers=1, leaves=4, sites=64, pages=50, delay_s=0.0, answer_s=0.5),
    LeafWorld(name="3 peers, 6 leaves, delay 1 s", peers=3, leaves=6, sites=192, pages=25, delay_s=1.0, answer_s=0.1),
)


class FirstCome(LeafSites):
    """Sites for whichever leaf asks first, the largest site first."""

    def sites_for(self, leaf: bytes, sites: Iterable[tuple[str, int]], now: float) -> Sequence[list[tuple[str, int]]]:
        """Return all sites."""
        return ([*sites],)


DEALT = {"two-level hash": LeafSites, "first come": FirstCome}
HASHED, FIRST_COME = DEALT


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafCost:
    """The cost of one crawl at the sites."""

    pages: int
    """Pages that leaves fetched."""
    connections: int
    """Connections that leaves opened to sites."""
    robots: int
    """Times that leaves asked for a robots.txt."""
    all_robots: int
    """Times that all machines asked for one."""
    pairs: int
    """Pairs of a leaf and a site that it asked."""
    seconds: float

    @property
    def connections_per_page(self) -> float:
        return self.connections / max(1, self.pages)

    @property
    def robots_per_page(self) -> float:
        return self.robots / max(1, self.pages)


def cost(seed: int, setting: LeafWorld, dealt: str) -> LeafCost:
    """Return what a whole crawl costs if sites are dealt so."""
    web = AlikeWeb(seed, setting.sites, setting.answer_s, setting.pages)
    job = Job(seeds=web.seeds, scope="any", delay_s=setting.delay_s, balance="off")
    wanted = len(web.seeds) + setting.sites * setting.pages

    async def story(swarm: Swarm) -> LeafCost:
        await swarm.begin()
        await swarm.grow(setting.peers)
        for number in range(LEAF_FIRST, LEAF_FIRST + setting.leaves):
            swarm.machines.hang(number)
        leaves = {machine.host.ip for machine in swarm.machines.leaves}
        began, log = swarm.loop.time(), swarm.server.log
        if setting.goes_at_s is not None:
            await swarm.wait(setting.goes_at_s)
            swarm.machines.kill(LEAF_FIRST)

        def whole() -> bool:
            return len(log) >= wanted and len({one.url for one in log if one.path != ROBOTS_PATH}) >= wanted

        await swarm.until(whole)
        pages = [one for one in log if one.path != ROBOTS_PATH and one.peer in leaves]
        robots = [one.peer for one in log if one.path == ROBOTS_PATH]
        return LeafCost(
            pages=len(pages),
            connections=sum(count for ip, count in swarm.server.opened.items() if ip in leaves),
            robots=sum(ip in leaves for ip in robots),
            all_robots=len(robots),
            pairs=len({(one.peer, one.host) for one in pages}),
            seconds=swarm.loop.time() - began,
        )

    with (
        mock.patch.object(leaf_host, "LeafSites", DEALT[dealt]),
        simulated(seed, web, job=job, limits=Limits(fetches_max=FETCHES_MAX)) as swarm,
    ):
        return swarm.run(story(swarm))


def leaves(seed: int, progress: Progress, *, worlds: Sequence[LeafWorld] = WORLDS) -> Result:
    """Crawl each world with sites dealt by the two-level hash, and with none dealt."""
    costs: dict[LeafWorld, dict[str, LeafCost]] = {}
    for number, setting in enumerate(worlds):
        costs[setting] = {}
        for name in DEALT:
            costs[setting][name] = cost(seed, setting, name)
            progress((number + len(costs[setting]) / len(DEALT)) / len(worlds))
    first = costs[worlds[0]]
    return Result(
        title="Leaves: connections and robots.txt, with a leaf for each site and without",
        paper="P3: the semi-distributed swarm and its two-level hash",
        how=(
            "Real peers and leaves in a simulated network, a web of sites with the same number of pages, and whole "
            f"crawls. A full peer deals its sites to its leaves by the two-level hash (a virtual table of {PLACES} "
            f"places, a real table of the live leaves). A site keeps its leaf, unless it waits {TURN_S:g} s for it: "
            "then a leaf without work takes it. *First come* is the same peer without that: the largest site goes to "
            "whichever leaf asks. The full peers crawl too. All numbers are counted at the web. The paper prints none."
        ),
        seed=seed,
        findings=[
            Finding(
                what=f"connections that leaves open per page, of those of first come ({worlds[0].name})",
                ours=first[HASHED].connections_per_page / first[FIRST_COME].connections_per_page,
                most=0.5,
            ),
            Finding(
                what=f"robots.txt that leaves ask for per page, of those of first come ({worlds[0].name})",
                ours=first[HASHED].robots_per_page / first[FIRST_COME].robots_per_page,
                most=0.5,
            ),
            Finding(
                what="duration of the crawl, of that of first come, the worst of all",
                ours=max(each[HASHED].seconds / each[FIRST_COME].seconds for each in costs.values()),
                most=1.1,
            ),
        ],
        tables=[
            Table(
                title="What leaves cost the sites",
                heading=(
                    "swarm",
                    "sites go by",
                    "pages of leaves",
                    "connections",
                    "per page",
                    "robots.txt of leaves",
                    "per page",
                    "of all",
                    "leaves that asked a site, mean",
                    "s",
                ),
                rows=[
                    (
                        setting.name,
                        name,
                        one.pages,
                        one.connections,
                        one.connections_per_page,
                        one.robots,
                        one.robots_per_page,
                        one.all_robots,
                        one.pairs / setting.sites,
                        one.seconds,
                    )
                    for setting, each in costs.items()
                    for name, one in each.items()
                ],
            )
        ],
        figures=[
            Figure(
                name="leaves-connections",
                title="Connections that leaves open per page",
                x="swarm",
                y="connections / page",
                kind="bars",
                series=[
                    Series(
                        label=name,
                        xs=[str(number + 1) for number in range(len(worlds))],
                        ys=[each[name].connections_per_page for each in costs.values()],
                    )
                    for name in DEALT
                ],
            )
        ],
    )
