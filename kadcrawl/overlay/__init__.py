"""The overlay: identity, routing on the `kademlia` package, siblings, ownership, and the wave.

The life of a peer here. It opens a UDP socket (`protocol`) and pings its bootstrap addresses. Whoever answers is
*heard* and enters its `routing` table; from there it asks for the peers nearest to its own ID (`lookup`) until the
nearest have all answered: its `siblings`, each of whom meets it on that occasion, pings it back and lets it in. Then
it looks up one random ID in every bucket the siblings do not cover. Now it knows its range: whether a cell is its own
follows from which of its buckets are empty (`ownership`); other owners it finds by siblings, cache or lookup.

From then on it keeps in touch. It pings siblings every few seconds and the others now and then, unless they have just
spoken; asks siblings again whom they know nearby, often after a change and rarely while nothing happens; and
refreshes far buckets every few minutes. A contact that misses twice is a suspect: kept and probed, but neither handed
out nor counted, so its cells are already ours or another's. Three misses, and it is evicted (`liveness`); it is tried
again now and then, in case it was the network that died. `membership` keeps these beliefs consistent and tells
whoever listens.

A peer that goes says so to its contacts; one that dies says nothing, and is noticed in a few seconds.
"""

from kadcrawl.overlay.overlay import Overlay
from kadcrawl.overlay.settings import OverlaySettings

__all__ = ["Overlay", "OverlaySettings"]
