"""The overlay: node IDs, routing on the `kademlia` package, siblings, ownership of cells, and waves.

The life of a peer here. It opens a UDP socket (`protocol`, with `datagrams` and `pending_requests`) and pings its
bootstrap addresses (`bootstrap`). A peer that answers is *heard* and enters the `routing` table. From there the new
peer looks up its own ID (`lookup` decides, `lookups` sends) until the nearest peers have all answered: its `siblings`.
Each of them pings it back and lets it in. Then it looks up one random ID in every bucket that the siblings do not
cover. Now it knows its range: whether a cell is its own follows from its empty buckets (`ownership`). Other owners it
finds by siblings, cache or lookup.

From then on it keeps in touch (`overlay`). It pings siblings every few seconds and other contacts now and then, unless
they have just sent a request. It asks siblings for peers near itself, often after a change and rarely without one. It
refreshes far buckets every few minutes. A contact that misses twice is a suspect: kept and pinged, but neither handed
out nor counted, so its cells already belong to this peer or another. Three misses evict it (`liveness`). It is pinged
again now and then, in case the network had failed. `membership` keeps all of this consistent and calls the listeners.

A peer that leaves tells its contacts. A peer that crashes tells nobody, and is noticed within seconds. `addresses`
checks addresses named by others, and `flood_sampler` limits the cost of floods. `waves` is a room of its own: questions
to the whole swarm, and the detection of the crawl's end.
"""

from typing import TYPE_CHECKING

from kadcrawl.overlay.settings import OverlaySettings

if TYPE_CHECKING:
    from kadcrawl.overlay.overlay import Overlay

__all__ = ["Overlay", "OverlaySettings"]


def __getattr__(name: str) -> object:
    """Import `Overlay` on first use (PEP 562), as a leaf needs other modules of this room, but has no overlay."""
    if name != "Overlay":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kadcrawl.overlay.overlay import Overlay

    return Overlay
