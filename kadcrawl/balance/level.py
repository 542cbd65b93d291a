"""The load level of a peer: L = S - Wf/H (P1 1.4.1).

The paper packs and unpacks. Arriving URLs fill the work area of W URLs, and then a buffer. A full buffer of H URLs
becomes a block, and a block is unpacked as soon as the work area has room for it. The level follows from S, the number
of blocks, and Wf, the free room: 0 is balanced, above is heavy, below is light, and no peer is lighter than -W/H.

A frontier only counts pending URLs, and that is enough. `BlockLoad` counts as if the work area were always full: URLs
beyond it form as many whole blocks as possible, and the rest, fewer than H, is the buffer. Both counts agree, except
while a packing peer holds a block without room for it although its work area is not full. That peer counts a block that
it partly needs for its own work area, so its level is higher by less than 1. Lending that block would leave the peer
light. Here the block does not count.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockLoad:
    """The pending URLs of one peer and its room for them. Raises ValueError unless W is n * H for an n >= 1."""

    pending: int
    """URLs to crawl at this peer: own URLs that are not lent, and borrowed URLs."""
    work_area: int
    """W, in URLs: the pending URLs that the peer aims at."""
    block: int
    """H, in URLs: the size of a heavy block, the same for all peers."""

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
        """The load level in blocks: below 0 light, above 0 heavy, never below -W/H."""
        return self.blocks - self.free / self.block

    @property
    def ratio(self) -> float:
        """pending / W, the paper's measure u: 1 is ideal."""
        return self.pending / self.work_area
