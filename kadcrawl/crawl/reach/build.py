"""Builds the parts by which a full peer lets other peers fetch what it cannot reach, and fetches for them.

Tests: tests/peer/test_bad_network.py
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import msgspec

from kadcrawl.crawl.fetch.fetcher import Fetcher, FormFetching
from kadcrawl.crawl.reach.lone_fetcher import LoneFetcher
from kadcrawl.crawl.reach.network_health import NetworkHealth
from kadcrawl.crawl.reach.network_proof import NetworkProof
from kadcrawl.crawl.reach.opinions import Opinions
from kadcrawl.crawl.reach.relay_client import RelayClient
from kadcrawl.crawl.reach.relayed_fetcher import Helpers, RelayedFetcher, WatchedFetcher
from kadcrawl.crawl.reach.self_test import SelfTest
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact
from kadcrawl.settings.limits import Limits
from kadcrawl.store.meta_table import MetaTable

KNOWN = "reached"
"""The name under which the journal keeps URLs of hosts that work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """The other peers of the swarm, as far as requests through them are about."""

    me: Callable[[], Contact]
    helpers: Helpers


@dataclass(frozen=True, slots=True)
class Reach:
    """The parts of one peer that tell a bad site from a bad network."""

    health: NetworkHealth
    watched: WatchedFetcher
    """Fetches directly. For pages of other peers, which decide for themselves who tries next."""
    own: WatchedFetcher | RelayedFetcher
    """Fetches this peer's own pages."""
    alone: FormFetching
    """Fetches this peer's own pages without the help of other peers."""
    self_test: SelfTest | None
    """None for a leaf, whose lenders let others try."""
    proof: NetworkProof
    opinions: Opinions = field(default_factory=Opinions)


def build_reach(
    fetching: FormFetching,
    fetcher: Fetcher,
    testing: tuple[Fetcher, FormFetching],
    swarm: Swarm | None,
    *,
    wait_s: float,
    client: LinkClient,
    limits: Limits,
    meta: MetaTable,
    random: Random,
    now: Callable[[], float],
) -> Reach:
    """Return the parts over `fetching`, which may use proxies. `fetcher` reads answers, and a leaf has no `swarm`.

    `testing` are a fetcher of their own for tests of the network, and how it is used.
    """
    health = NetworkHealth(wait_s, meta.read(KNOWN, msgspec.json.Decoder(list[str]).decode) or ())
    watched, proof = WatchedFetcher(fetching, health, now), NetworkProof(*testing, health, now)
    if swarm is None:
        return Reach(health, watched, watched, watched, None, proof)
    opinions, relay = Opinions(), RelayClient(client, swarm.me, limits)
    own = RelayedFetcher(
        watched,
        fetcher,
        relay,
        health,
        opinions,
        helpers=swarm.helpers,
        works=proof.works,
        random=random,
        limits=limits,
        now=now,
    )
    alone = LoneFetcher(
        watched, relay, opinions, helpers=swarm.helpers, works=proof.works, wait_s=wait_s, random=random, now=now
    )
    test = SelfTest(
        proof,
        relay,
        health,
        opinions,
        helpers=swarm.helpers,
        now=now,
        keep=lambda urls: meta.set(KNOWN, msgspec.json.encode(urls)),
    )
    return Reach(health, watched, own, alone, test, proof, opinions)
