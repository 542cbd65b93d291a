"""The way into a swarm: finds a peer that answers, and checks that its swarm is the swarm of this directory.

A directory belongs to one swarm, as its journal and its key do. The key that is given may differ from the key that the
directory keeps: either the swarm's key was changed while this peer was away, or the key is of another swarm, whose
crawl must not mix with this journal. A peer that this one knew tells them apart: if it proves to be the same peer,
accepts the new key and serves the same job, then the key was changed. If no known peer is left, a person must decide
(--rekeyed), and even then the job must be the same.
"""

from collections.abc import Sequence

from kadcrawl.errors import StartError, UnansweredError
from kadcrawl.link.wire.messages import Welcome
from kadcrawl.overlay.addresses import ip_version
from kadcrawl.peer.membership.bootstrap_names import addresses_of
from kadcrawl.peer.membership.endpoints import hello
from kadcrawl.peer.membership.known_peers import KnownPeers, is_same
from kadcrawl.peer.resources import Resources

Address = tuple[str, int]


async def welcomed(
    resources: Resources,
    known: KnownPeers,
    bootstrap: Sequence[Address],
    *,
    listens_at: Address | None,
    rekeyed: bool,
) -> tuple[Welcome, Sequence[Address]]:
    """Return the answer of the swarm of these peers (host, port), and the peers by which to enter it.

    If none of them answers, the peers in `known` are asked. `listens_at` is this peer's own address, which is not
    asked. `rekeyed`: a person says that the swarm's key was changed meanwhile. Raises StartError when no peer answers,
    or when the swarm is another one.
    """
    job, client, rotation = resources.jobs.journaled(), resources.client, resources.key_rotation
    try:
        bootstrap = await _others(bootstrap, listens_at)
        welcome = await hello(client, bootstrap)
    except StartError:
        if not (bootstrap := await known.answering(job)):
            raise
        return await hello(client, bootstrap), bootstrap
    data = resources.config.data
    if job is not None and welcome.job.seeds and not is_same(job, welcome.job):
        raise StartError(f"{data} is of another swarm, with other seeds: choose another directory with --data")
    if rotation is not None and rotation.is_newcomer and not rekeyed and not await known.answering(job):
        raise StartError(
            f"{data} is of a swarm with another key, and no peer it knew lets it in by "
            f"{rotation.credentials.keyring.key.description}: choose another directory with --data; or, if this is "
            "that swarm and its key was changed meanwhile, say so by --rekeyed"
        )
    return welcome, bootstrap


async def _others(bootstrap: Sequence[Address], listens_at: Address | None) -> Sequence[Address]:
    """Return the addresses of bootstrap peers but this peer's own. Raises StartError if none is left."""
    addresses = await addresses_of(bootstrap, ip_version(listens_at[0]) if listens_at else None)
    others = [address for address in addresses if address != listens_at]
    if not others:
        why = "cannot join: the peer to join is this very peer; --bootstrap names another one of the swarm"
        # A name may get the addresses of other peers once they run.
        raise StartError(why) if addresses == [*bootstrap] else UnansweredError(why)
    return others
