"""Load balance by several policies, by real peers on the same webs: what each brings, and what it costs (P1 1.4).

Each peer makes one request at a time, so the peers are the bottleneck. Sites differ in size and ranges in width, so
some peers own far more work than others. Each policy crawls the same web to its end.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest import mock

from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import GetLoad, Lend, Lent, Message
from kadcrawl.peer import build
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.system.open_files import raise_limit

from ..big import COMPANY_S
from ..synthetic_sites import PLAIN
from ..synthetic_web import SyntheticWeb
from ..trial import WEB_ADDRESS
from .balance_policies import PrintedLevelPolicy, SamplingDrainPolicy
from .experiment import Finding, Progress, Result, Table
from .swarm import Swarm, simulated

Balance = Literal["off", "level", "drain"]
SIZES = (8, 64)
SITES_PER_PEER = 5
PAGES_PER_PEER = 100
SIZES_LARGE = (256,)
PAGES_PER_PEER_LARGE = 30
"""A shorter crawl, as 256 peers take some minutes for each policy."""
SEEDS = 3
ZIPF = 0.7
"""No site is so large that its connections are the bottleneck."""
FEWER = 1 / 3
"""The target for the questions of `drain`, as a share of those of the sample."""
BLOCK = 5
"""H, URLs: a second and a half of work."""
UPDATE_S = 2.0
"""T."""
LIMITS = Limits(fetches_max=1, batch_spacing_s=COMPANY_S, commit_spacing_s=COMPANY_S)
JOINED_WITHIN_S = 20.0
APART_S = 0.1

NOT_WORSE = 0.97
"""The target for the output of `drain`, as a share of that of the sample: chance moves it by some percent."""

OFF, PRINTED, LEVEL, SAMPLED, DRAIN = "off", "level as printed", "level", "drain by a sample", "drain"
POLICIES: dict[str, tuple[Balance, tuple[str, type] | None]] = {
    OFF: ("off", None),
    PRINTED: ("level", ("LevelPolicy", PrintedLevelPolicy)),
    LEVEL: ("level", None),
    SAMPLED: ("drain", ("DrainPolicy", SamplingDrainPolicy)),
    DRAIN: ("drain", None),
}
"""Name of a policy -> the setting of the job, and the class of `kadcrawl.peer.build` that another class replaces."""


@dataclass(slots=True)
class Balanced:
    """The counts of one crawl."""

    peers: int
    pages: int = 0
    seconds: float = 0.0
    questions: int = 0
    """Questions for a load, by all peers."""
    offers: int = 0
    """Loans offered."""
    refused: int = 0
    """Loans among these that were refused."""
    moved: Counter[str] = field(default_factory=Counter)
    """URL -> accepted loans with it."""

    @property
    def output(self) -> float:
        """Pages a second of one peer."""
        return self.pages / self.seconds / self.peers

    @property
    def lent(self) -> float:
        """URLs in accepted loans, for a page."""
        return self.moved.total() / self.pages


@contextmanager
def counted(count: Balanced) -> Iterator[None]:
    """Count all questions and loans while the context is open."""
    ask = LinkClient.ask

    async def asked(client: LinkClient, address: Any, message: Message, *rest: Any) -> Any:
        count.questions += isinstance(message, GetLoad)
        count.offers += isinstance(message, Lend)
        answer = await ask(client, address, message, *rest)
        if isinstance(message, Lend) and isinstance(answer, Lent):
            count.refused += not answer.accepted
            if answer.accepted:
                count.moved.update(record.url for record in message.pending)
        return answer

    with mock.patch.object(LinkClient, "ask", asked):
        yield


def crawl(seed: int, peers: int, policy: str, pages_per_peer: int = PAGES_PER_PEER) -> Balanced:
    """Let `peers` peers crawl their web to its end by a policy, and count from the seeds to the end."""
    raise_limit()
    pages = pages_per_peer * peers
    web = SyntheticWeb(
        seed,
        sites=SITES_PER_PEER * peers,
        pages=pages,
        seeds=SEEDS,
        zipf=ZIPF,
        mix=PLAIN,
        addresses=(WEB_ADDRESS,),
    )
    count = Balanced(peers)

    async def story(swarm: Swarm) -> None:
        await swarm.begin()
        await swarm.grow(peers, min(APART_S, JOINED_WITHIN_S / peers))
        began = swarm.loop.time()
        with counted(count):
            first = swarm.machines.machines[0]
            assert first.peer is not None
            await first.host.spawn(first.peer.crawl(web.seeds))
            await swarm.until(lambda: sum(peer.counters.done for peer in swarm.peers) >= pages)
        count.seconds = swarm.loop.time() - began
        count.pages = sum(peer.counters.pages for peer in swarm.peers)

    balance, instead = POLICIES[policy]
    job = Job(scope="any", delay_s=0.0, balance=balance, block_urls=BLOCK, update_s=UPDATE_S)
    with (
        mock.patch.object(build, *instead) if instead else nullcontext(),
        simulated(seed, web, job=job, limits=LIMITS) as swarm,
    ):
        swarm.run(story(swarm))
    return count


HOW = """Real peers in a simulated network crawl the same web to its end, {pages} pages and {sites} sites for each peer,
one request at a time each and without delay, so that the peers are the bottleneck. T = {update:g} s, H = {block}. Each
policy lends as kadcrawl does, on a lease and a site at a time; only its decisions differ. "{printed}" is P1 1.4.2: all
blocks of a heavy peer go to the first light peer of the first bucket whose levels and its own are together below 0,
and that peer must take them. "{level}" is the same with offers, as built here. "{sampled}" is what drain was at first:
each peer with a block asks up to 64 contacts at random at each update. "{drain}" is the default: heavy peers only, near
buckets first, and nobody whose load is known. Output counts from the seeds to the last page, with the start, when most
have nothing yet, and the end, when most have nothing left."""


def balancing(
    seed: int, progress: Progress, *, sizes: Sequence[int] = SIZES, pages_per_peer: int = PAGES_PER_PEER
) -> Result:
    """Crawl by each policy with swarms of each size. `sizes` are the numbers of peers."""
    done = 0
    counts: dict[int, dict[str, Balanced]] = {}
    for peers in sizes:
        counts[peers] = {}
        for policy in POLICIES:
            counts[peers][policy] = crawl(seed, peers, policy, pages_per_peer)
            done += peers
            progress(done / (sum(sizes) * len(POLICIES)))
    return Result(
        title="Load balance by several policies, on real peers",
        paper="P1 1.4",
        how=" ".join(HOW.split()).format(
            pages=pages_per_peer,
            sites=SITES_PER_PEER,
            update=UPDATE_S,
            block=BLOCK,
            printed=PRINTED,
            level=LEVEL,
            sampled=SAMPLED,
            drain=DRAIN,
        ),
        seed=seed,
        findings=[one for peers, policies in counts.items() for one in _findings(peers, policies)],
        tables=[_table(peers, pages_per_peer * peers, policies) for peers, policies in counts.items()],
    )


def _findings(peers: int, counts: dict[str, Balanced]) -> list[Finding]:
    drain, sampled, off = counts[DRAIN], counts[SAMPLED], counts[OFF]
    return [
        Finding(what=f"output by drain, of that without lending, {peers} peers", ours=drain.output / off.output),
        Finding(
            what=f"output by drain, of that by a sample, {peers} peers",
            ours=drain.output / sampled.output,
            least=NOT_WORSE,
        ),
        Finding(
            what=f"output by drain, of that by the level as printed, {peers} peers",
            ours=drain.output / counts[PRINTED].output,
        ),
        Finding(
            what=f"questions for a page by drain, of those by a sample, {peers} peers",
            ours=drain.questions / sampled.questions,
            most=FEWER,
        ),
    ]


def _table(peers: int, pages: int, counts: dict[str, Balanced]) -> Table:
    return Table(
        title=f"{peers} peers, {pages:,} pages",
        heading=[
            "policy",
            "pages / s / peer",
            "questions / page",
            "URLs lent / page",
            "most moves of a page",
            "loans offered",
            "loans refused",
        ],
        rows=[
            [
                policy,
                count.output,
                count.questions / count.pages,
                count.lent,
                max(count.moved.values(), default=0),
                count.offers,
                count.refused,
            ]
            for policy, count in counts.items()
        ],
    )
