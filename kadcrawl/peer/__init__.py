"""The peer: puts the rooms together and lives their common life. Only this room knows them all.

The life of a peer. It locks its directory, opens its journal, finds its node ID there or draws one, and listens (TCP
and UDP on one port). The first of a swarm begins with a job of its own; every other one *joins*: it asks a peer it
knows for the job, takes of a few IDs the one that splits the largest range (`identity`), enters the overlay, and asks
its siblings to hand over what is now nearer to it (`handover`); only then does it fetch. From then on it owns the cells
it is nearest to: it takes links offered to it (`service`), crawls them (crawl/), sends the links it finds to their
owners, and shares in every wave. It leaves by handing its range over and saying goodbye, or dies; started again on its
directory it goes on where its journal ends.

Nothing here decides; `Peer` builds, starts and stops, `service` answers the link, `handover` moves ranges.
"""

from kadcrawl.leaf.leaf import Leaf
from kadcrawl.peer.peer import Peer

__all__ = ["Leaf", "Peer"]
