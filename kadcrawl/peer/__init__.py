"""A full peer: puts the rooms below together and lives their common life.

The life of a peer. It locks its directory and opens its journal (`resources`), finds its node ID there or draws one
(`membership/node_id`), and listens, TCP and UDP on one port (`membership/endpoints`). The first peer of a swarm begins
with a job of its own. Every other peer joins: it asks a peer it knows for the job (`membership/bootstrap`), draws a few
IDs and takes the one that splits the largest range, builds its parts (`build`), enters the overlay, and takes over the
cells it is now nearest to (replication/owner/). Only then it fetches (`tasks`).

From then on the peer owns the cells it is nearest to. It accepts links that others offer (`offered_links`), crawls them
(crawl/), sends the links it finds to their owners, and answers waves (`swarm/`). `handlers` says when it answers which
message. It leaves by handing its range over and saying goodbye (`shutdown`), or it crashes; started again on its
directory it joins its swarm or begins alone (`rejoin`), and goes on where its journal ends.

`Peer` (peer.py) is the facade. `Runtime` (runtime.py) has the parts and the state, and all helpers take it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kadcrawl.peer.peer import Peer

__all__ = ["Peer"]


def __getattr__(name: str) -> object:
    """Import `Peer` on first use (PEP 562), as a leaf needs other modules of this room, but no full peer."""
    if name != "Peer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kadcrawl.peer.peer import Peer

    return Peer
