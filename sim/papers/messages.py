"""Messages: the cost of shedding, and the cost of a discovered link here and by the paper (P1 1.2, Fig 8).

Each crawl is repeated in several worlds, as lending differs much from world to world. Every number is the mean.

Tests: tests/sim/test_papers_messages.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .experiment import Figure, Finding, Progress, Result, Series, Table
from .message_counts import BLOCK, PAGES, SITES, UPDATE_S, Count, Paper, by_the_paper, crawl, web_of

SIZES = (2, 8, 32)
PEERS = 8
WORLDS = 3
"""Webs and swarms of which each number is the mean. Their seeds follow one another."""
REQUESTS = 1 / 10
ENTRIES = 1 / 3
"""The targets of offers, as shares of the paper's protocol."""
COPYING = (0.25, 0.4)
COPYING_LENT = (0.4, 0.6)
"""The targets of offers and copies together, in requests and URLs, without and with lending."""

SHEDDING: dict[Literal["level", "drain"], str] = {"level": "with shedding by level", "drain": "with shedding by drain"}

Measure = Callable[[Count, Paper], float]


@dataclass(frozen=True, slots=True)
class Crawls:
    """The same crawl in each world, and the paper's protocol on its links."""

    counts: list[Count]
    papers: list[Paper]

    def each(self, measure: Measure) -> list[float]:
        """Return a number of each crawl."""
        return [measure(count, paper) for count, paper in zip(self.counts, self.papers, strict=True)]

    def mean(self, measure: Measure) -> float:
        """Return the mean of a number of the crawls."""
        return sum(self.each(measure)) / len(self.counts)

    def about(self) -> dict[str, float]:
        """Return the messages of a crawl by topic."""
        topics = [count.about() for count in self.counts]
        return {topic: sum(one[topic] for one in topics) / len(topics) for topic in topics[0]}


def offers(count: Count, paper: Paper) -> float:
    """Return the offers of links, relative to the paper's requests."""
    return count.requests["Offer"] / paper.requests


def offered_urls(count: Count, paper: Paper) -> float:
    """Return the URLs in offers, relative to the paper's."""
    return count.offered / paper.requests


def with_copies(count: Count, paper: Paper) -> float:
    """Return the offers of links and the copies, relative to the paper's requests."""
    return (count.requests["Offer"] + count.requests["Replicate"]) / paper.requests


def urls_with_copies(count: Count, paper: Paper) -> float:
    """Return the URLs in offers and copies, relative to the paper's."""
    return (count.offered + count.copied) / paper.requests


def messages(seed: int, progress: Progress, *, is_short: bool = False) -> Result:
    """Crawl with few and many peers, with and without shedding, and count.

    If `is_short`, 8 peers crawl without shedding.
    """
    peer_counts, balances = ((PEERS,), {}) if is_short else (SIZES, SHEDDING)
    done, steps = 0, WORLDS * (sum(peer_counts) + len(balances) * PEERS)

    def repeated(peers: int, balance: Literal["off", "level", "drain"] = "off") -> Crawls:
        nonlocal done
        crawls = Crawls([], [])
        for world in range(seed, seed + WORLDS):
            count = crawl(world, peers, balance)
            crawls.counts.append(count)
            crawls.papers.append(by_the_paper(count.peers, count.discovered, web_of(world).seeds))
            done += peers
            progress(done / steps)
        return crawls

    sizes = {peers: repeated(peers) for peers in peer_counts}
    off = sizes[PEERS]
    crawls = {"without shedding": off, **{name: repeated(PEERS, balance) for balance, name in balances.items()}}
    drain = crawls.get(SHEDDING["drain"])
    about = {name: one.about() for name, one in crawls.items()}
    rows: list[list[str | float]] = [[what, *(one[what] for one in about.values())] for what in off.about()]
    totals = {name: sum(one.values()) for name, one in about.items()}
    seconds = {name: one.mean(lambda count, _: count.seconds) for name, one in crawls.items()}
    return Result(
        title="Messages: with and without shedding, and of a discovered link",
        paper="P1 1.2 and 2.2, Fig 8",
        how=(
            f"Real peers in a simulated network crawl {PAGES:,} pages on {SITES} sites of Zipf sizes to the end, one "
            "request at a time each and without delay, so that the peers are the bottleneck. Counted is what they ask "
            f"each other, from the seeds to the end; answers are not. With shedding H = {BLOCK} and T = {UPDATE_S:g} "
            "s: by load level, and by seconds to drain, the default. What a taker finds on the pages of another's "
            "site it has to send there, so that lending costs offers. The paper's protocol is counted through on the "
            "links these very peers discovered, in that order: for each link a query to the backup at h2; if it is "
            "new it is sent to the owner at h1 and recorded at the backup; each is one request about one URL, except "
            "to oneself. Nothing is lost, late or asked twice because two found the link at one moment, and the look-"
            "ups of h1 and h2 are free: so this is the least the paper's protocol sends. Here only links that are "
            "news to their finder, and of another site than their page, are sent, in batches, to the owner, who "
            "decides. Copies for two backups, of each URL when it is found and when it is done, are counted apart: "
            "the paper keeps no copy of what is pending, and one of what is done, its record. A URL counts each time "
            "it is named, by its text or by its key. A run names the first of some pages of a site that end in the "
            "order in which the backup has them, and says how many they are: it counts as one. Every "
            f"number is the mean of {WORLDS} worlds, each with a web, a swarm and chance of its own, whose seeds "
            "follow one another."
        ),
        seed=seed,
        findings=[
            *(one for peers in peer_counts for one in _offers(sizes[peers], f"{peers} peers")),
            *_copies(off, f"{PEERS} peers", COPYING),
            *(_offers(drain, f"{PEERS} peers that shed (drain)") if drain else ()),
            *(_copies(drain, f"{PEERS} peers that shed (drain)", COPYING_LENT) if drain else ()),
            *(
                Finding(
                    what=f"messages of a crawl {name}, of one without, {PEERS} peers",
                    ours=totals[name] / totals["without shedding"],
                )
                for name in balances.values()
            ),
        ],
        tables=[
            Table(
                title="Of a discovered link",
                heading=["", *(f"{peers} peers" for peers in peer_counts)],
                rows=[
                    [what, *(one.mean(_of_a_link(measure)) for one in sizes.values())] for what, measure in ROWS.items()
                ],
            ),
            Table(
                title=f"Messages of the whole crawl, {PEERS} peers",
                heading=["", *crawls],
                rows=[
                    *rows,
                    ["all", *totals.values()],
                    ["pages fetched for another", *(one.mean(lambda count, _: count.lent) for one in crawls.values())],
                    ["seconds", *seconds.values()],
                    ["messages a second", *(totals[name] / seconds[name] for name in crawls)],
                ],
            ),
            Table(
                title=f"Offers and copies in each world, of the paper's, {PEERS} peers",
                heading=["", *(f"seed {world}" for world in range(seed, seed + WORLDS))],
                rows=[
                    [f"{what}, {name}", *crawls[name].each(measure)]
                    for name in ("without shedding", SHEDDING["drain"])
                    if name in crawls
                    for what, measure in (("requests", with_copies), ("URLs", urls_with_copies))
                ],
            ),
        ],
        figures=[
            Figure(
                name="messages",
                title=f"Messages of a crawl by {PEERS} peers",
                x="about",
                y="messages",
                kind="bars",
                series=[Series(label=name, xs=[*one], ys=[*one.values()]) for name, one in about.items()],
            )
        ],
    )


def _of_a_link(measure: Measure) -> Measure:
    return lambda count, paper: measure(count, paper) / count.links


def _offers(crawls: Crawls, who: str) -> list[Finding]:
    """Return the cost of links in requests and in URLs, relative to the paper's protocol, with the targets."""
    return [
        Finding(what=f"offers of links, of the paper's requests, {who}", ours=crawls.mean(offers), most=REQUESTS),
        Finding(what=f"URLs in them, of the paper's, {who}", ours=crawls.mean(offered_urls), most=ENTRIES),
    ]


def _copies(crawls: Crawls, who: str, most: tuple[float, float]) -> list[Finding]:
    """Return the cost of links and copies together, in requests and in URLs, with the targets."""
    requests, urls = crawls.mean(with_copies), crawls.mean(urls_with_copies)
    return [
        Finding(what=f"the same with copies, requests, {who}", ours=requests, most=most[0]),
        Finding(what=f"the same with copies, URLs, {who}", ours=urls, most=most[1]),
    ]


ROWS: dict[str, Measure] = {
    "the paper: queries": lambda count, paper: paper.queries,
    "the paper: sent to the owner": lambda count, paper: paper.sends,
    "the paper: recorded": lambda count, paper: paper.records,
    "the paper: requests, and URLs in them": lambda count, paper: paper.requests,
    "here: offers": lambda count, paper: count.requests["Offer"],
    "here: URLs offered": lambda count, paper: count.offered,
    "here: requests that copy": lambda count, paper: count.requests["Replicate"],
    "here: URLs copied": lambda count, paper: count.copied,
    "here: URLs told by runs": lambda count, paper: count.in_runs,
    "here: bytes of copies": lambda count, paper: count.copied_bytes,
    "new, of all": lambda count, paper: count.pages,
}
"""The rows of the table: label -> count over all links."""
