"""The load level of a peer, from what it has to crawl: L = S - Wf/H (P1 1.4.1).

The paper packs and unpacks: arriving URLs fill the work area of W, then a buffer; a buffer of H becomes a block; a
block is unpacked as soon as the work area has room for it. Of S, the blocks held, and Wf, the free room, comes the
level: 0 is balanced, above is heavy, below is light, and nothing is lighter than -W/H.

A frontier only knows how many URLs are pending, and that is enough. `Load` counts as if the work area were always
kept full: what is beyond it makes as many whole blocks as it can; the rest, fewer than H, is the buffer and no block.
Both ways of counting agree, except while a packing peer holds a block it has no room for yet although its work area
is not full. There the packing peer counts a block that is partly needed to fill its own work area, and its level is
the higher of the two by less than 1: giving that block away would leave it light. Here it does not count.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockLoad:
    """What one peer has to crawl, and its room for it. Raises ValueError for a W that is not n * H, n >= 1."""

    pending: int
    """URLs to crawl at this peer: its own and taken ones, without those a taker has for it."""
    work_area: int
    """W, in URLs: what the peer likes to have before it."""
    block: int
    """H, in URLs: what a heavy block holds. The same for all peers."""

    def __post_init__(self) -> None:
        if self.block < 1 or self.work_area < self.block or self.work_area % self.block:
            raise ValueError(f"a work area is 1, 2, 3, … blocks, not {self.work_area} URLs of {self.block}")
        if self.pending < 0:
            raise ValueError(f"{self.pending} URLs pending")

    @property
    def free(self) -> int:
        """URLs the work area has room for."""
        return max(0, self.work_area - self.pending)

    @property
    def blocks(self) -> int:
        """Whole heavy blocks beyond the work area."""
        return max(0, self.pending - self.work_area) // self.block

    @property
    def level(self) -> float:
        """In blocks: below 0 light, above 0 heavy, never below -W/H."""
        return self.blocks - self.free / self.block

    @property
    def ratio(self) -> float:
        """pending / W, the paper's measure u: 1 is ideal."""
        return self.pending / self.work_area
