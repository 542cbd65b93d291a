"""Load balance by several policies, by real peers on the same webs: what each brings, and what it costs (P1 1.4).

Each peer makes one request at a time, so the peers are the bottleneck, and sites differ in size by Zipf's law, so some
peers own far more work than others. Each policy crawls the same web to its end.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest import mock

from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import GetLoad, Lend, Lent, Message
from kadcrawl.peer import build
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits

from ..big import COMPANY_S, raise_open_files
from ..synthetic_sites import PLAIN
from ..synthetic_web import SyntheticWeb
from ..trial import WEB_ADDRESS
from .balance_policies import PrintedLevelPolicy, SamplingDrainPolicy
from .swarm import Swarm, simulated

Balance = Literal["off", "level", "drain"]
SIZES = (8, 64)
SIZES_FULL = (8, 64, 256)
SITES_PER_PEER = 5
PAGES_PER_PEER = 100
SEEDS = 3
ZIPF = 1.0
BLOCK = 5
"""H, URLs: a second and a half of work."""
UPDATE_S = 2.0
"""T."""
LIMITS = Limits(fetches_max=1, batch_spacing_s=COMPANY_S, commit_spacing_s=COMPANY_S)
JOINED_WITHIN_S = 20.0
APART_S = 0.1

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


def crawl(seed: int, peers: int, policy: str) -> Balanced:
    """Let `peers` peers crawl their web to its end by a policy, and count from the seeds to the end."""
    raise_open_files()
    web = SyntheticWeb(
        seed,
        sites=SITES_PER_PEER * peers,
        pages=PAGES_PER_PEER * peers,
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
            await swarm.until(lambda: not any(peer.pending for peer in swarm.peers) and swarm.loop.time() > began + 5)
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
