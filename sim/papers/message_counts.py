"""The messages of a crawl by real peers, and those of the paper's protocol for the same links (P1 1.2).

The peers crawl a web to its end. All requests among them are counted, and all discovered links are recorded with their
peer. The paper's protocol is then counted on these same links.

Tests: tests/sim/test_papers_messages.py
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal
from unittest import mock

from msgspec import msgpack

from kadcrawl.crawl.content.link_finder import FoundLinks, LinkFinder
from kadcrawl.crawl.fetch.result import FetchResult
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Message, Offer, Replicate
from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.store.frontier_entry import FrontierEntry
from kadcrawl.system.cooperative import CooperativeWork

from ..network import HOST
from ..synthetic_sites import PLAIN
from ..synthetic_web import SyntheticWeb
from ..trial import WEB_ADDRESS
from .swarm import Swarm, simulated

SITES = 40
PAGES = 2_000
SEEDS = 3
ZIPF = 1.0
BLOCK = 20
"""H, URLs (P1 2)."""
UPDATE_S = 2.0
"""T: the crawl takes a minute, so it is shorter than the paper's."""
BUSY = Limits(fetches_max=1)
"""Each peer is the bottleneck: it makes one request at a time."""
OVERLAY, LINKS, COPIES, BALANCE, OTHER = "overlay", "links", "copies", "balance", "moving and the end"
KINDS = {
    **dict.fromkeys(("Offer", "DatedOffer"), LINKS),
    **dict.fromkeys(("Replicate", "AssignReplica", "CompareDigests", "Reconcile"), COPIES),
    **dict.fromkeys(("GetLoad", "Lend", "RenewLease", "Recall"), BALANCE),
}
"""Name of a link request -> its topic. Requests not listed here are `OTHER`."""


@dataclass(slots=True)
class Count:
    """The messages of one crawl."""

    requests: Counter[str] = field(default_factory=Counter)
    """Questions on the link, by their names."""
    offered: int = 0
    """URLs in all offers of links."""
    copied: int = 0
    """URLs named in all records copied to backups."""
    in_runs: int = 0
    """Finished URLs told by runs. Of each run one URL is named, which `copied` counts."""
    copied_bytes: int = 0
    """Bytes of the requests that copy."""
    datagrams: int = 0
    discovered: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """(IP address of the peer, distinct links) of each page, in the order of discovery."""
    peers: dict[str, int] = field(default_factory=dict)
    """IP address -> ID."""
    pages: int = 0
    lent: int = 0
    seconds: float = 0.0

    @property
    def links(self) -> int:
        """Links discovered, repeats included."""
        return sum(len(links) for _, links in self.discovered)

    def about(self) -> dict[str, int]:
        """Return the messages by topic."""
        found = dict.fromkeys((OVERLAY, LINKS, COPIES, BALANCE, OTHER), 0)
        found[OVERLAY] = self.datagrams
        for name, count in self.requests.items():
            found[KINDS.get(name, OTHER)] += count
        return found

    def note(self, message: Message) -> None:
        """A peer asks another."""
        self.requests[type(message).__name__] += 1
        match message:
            case Offer(links=links):
                self.offered += len(links)
            case Replicate(batch=batch, runs=runs):
                self.copied += len(batch.done) + len(batch.pending) + len(runs)
                self.in_runs += sum(run.count for run in runs)
                self.copied_bytes += len(msgpack.encode(message))


@contextmanager
def counted(count: Count) -> Iterator[None]:
    """Count all requests among peers and record their discovered links, while the context is open."""
    ask, found = LinkClient.ask, LinkFinder.find_links

    async def asked(client: LinkClient, address: Any, message: Message, *rest: Any) -> Any:
        count.note(message)
        return await ask(client, address, message, *rest)

    def discovered(
        finder: LinkFinder, entry: FrontierEntry, fetched: FetchResult, *rest: Any
    ) -> CooperativeWork[FoundLinks]:
        result = yield from found(finder, entry, fetched, *rest)
        count.discovered.append((HOST.get().ip, result.links))
        return result

    with mock.patch.object(LinkClient, "ask", asked), mock.patch.object(LinkFinder, "find_links", discovered):
        yield


def web_of(seed: int) -> SyntheticWeb:
    """Return the web of the experiment: plain pages on sites of Zipf sizes, with one link in eight to another site."""
    return SyntheticWeb(seed, sites=SITES, pages=PAGES, seeds=SEEDS, zipf=ZIPF, mix=PLAIN, addresses=(WEB_ADDRESS,))


def crawl(seed: int, peers: int, balance: Literal["off", "level", "drain"] = "off") -> Count:
    """Let `peers` peers crawl the web to its end, and return the counts from the start of the crawl on."""
    web = web_of(seed)
    count = Count()

    async def story(swarm: Swarm) -> None:
        await swarm.begin()
        await swarm.grow(peers)
        before = sum(peer.overlay.counters.sent for peer in swarm.peers)
        began = swarm.loop.time()
        with counted(count):
            first = swarm.machines.machines[0]
            assert first.peer is not None
            await first.host.spawn(first.peer.crawl(web.seeds))
            await swarm.until(lambda: all(peer.ended for peer in swarm.peers))
        count.seconds = swarm.loop.time() - began
        count.datagrams = sum(peer.overlay.counters.sent for peer in swarm.peers) - before
        count.peers = {machine.host.ip: machine.peer.contact.number for machine in swarm.machines.live if machine.peer}
        count.pages = sum(peer.counters.pages for peer in swarm.peers)
        count.lent = sum(peer.balancing.loans.lender.done for peer in swarm.peers)

    job = Job(scope="any", delay_s=0.0, balance=balance, block_urls=BLOCK, update_s=UPDATE_S)
    with simulated(seed, web, job=job, limits=BUSY) as swarm:
        swarm.run(story(swarm))
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """The requests of the paper's protocol for some discovered links. Each request is about one URL."""

    queries: int
    """Is this URL in the history? to the backup at h2."""
    sends: int
    """New URLs sent to the owner at h1."""
    records: int
    """New URLs sent to the backup again."""

    @property
    def requests(self) -> int:
        return self.queries + self.sends + self.records


def by_the_paper(
    peers: dict[str, int], discovered: Sequence[tuple[str, tuple[str, ...]]], seeds: Sequence[str]
) -> Paper:
    """Count the requests of the paper's protocol, without loss and delay. Requests of a peer to itself cost nothing.

    `discovered` is as in `Count`. The `seeds` are known from the beginning.
    """
    places: dict[str, tuple[int, int]] = {}
    known = set(seeds)
    queries = sends = records = 0
    for finder, links in discovered:
        me = peers[finder]
        for url in links:
            if url not in places:
                places[url] = (_nearest(peers, url, b"h1"), _nearest(peers, url, b"h2"))
            owner, backup = places[url]
            queries += backup != me
            if url not in known:
                known.add(url)
                sends += owner != me
                records += backup != me
    return Paper(queries=queries, sends=sends, records=records)


def _nearest(peers: dict[str, int], url: str, name: bytes) -> int:
    place = int.from_bytes(blake2b(url.encode(), digest_size=20, person=name).digest(), "big")
    return min(peers.values(), key=lambda peer: peer ^ place)
