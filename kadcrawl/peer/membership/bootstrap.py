"""The way into a swarm: who answers of those that were named or known, and whether it is the swarm of this directory.

A directory goes with one swarm, as its journal and its key do. If the key that is given is another than the one kept,
either the swarm's was changed while this peer was away, or it is another swarm, whose crawl would be mixed with what is
here. What tells them apart: whoever this peer knew, and proves to be that one, lets it in by the new key, and is at its
job. If nobody is left of those, only a person knows, and has to say so; and even then the job must be the same.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kadcrawl.errors import StartError
from kadcrawl.link.wire.messages import Welcome
from kadcrawl.peer.membership.endpoints import hello
from kadcrawl.peer.membership.known_peers import is_same

if TYPE_CHECKING:
    from kadcrawl.peer.base import PeerBase

Address = tuple[str, int]


async def welcomed(
    peer: "PeerBase", bootstrap: Sequence[Address], *, rekeyed: bool
) -> tuple[Welcome, Sequence[Address]]:
    """Return what the swarm of these peers (host, port) says, and by whom to enter it.

    If none of them answers, those are asked whom `member` knew when it last ran. `rekeyed`: a person says that the
    swarm's key was changed meanwhile. Raises StartError when nobody answers, or it is another swarm.
    """
    job = peer.journaled_job
    others = [address for address in bootstrap if address != peer.listens_at]
    if not (bootstrap := others or await peer.known.answering(job)):
        raise StartError("cannot join: the peer to join is this very peer; --bootstrap names another one of the swarm")
    try:
        welcome = await hello(peer.client, bootstrap)
    except StartError:
        if not (bootstrap := await peer.known.answering(job)):
            raise
        return await hello(peer.client, bootstrap), bootstrap
    data = peer.config.data
    if job is not None and welcome.job.seeds and not is_same(job, welcome.job):
        raise StartError(f"{data} is of another swarm, with other seeds: choose another directory with --data")
    if peer.key_rotation is not None and peer.key_rotation.is_newcomer:
        key = peer.key_rotation.credentials.keyring.key
        if not rekeyed and not await peer.known.answering(job):
            raise StartError(
                f"{data} is of a swarm with another key, and no peer it knew lets it in by {key.description}: choose "
                "another directory with --data; or, if this is that swarm and its key was changed meanwhile, say so by "
                "--rekeyed"
            )
    return welcome, bootstrap
