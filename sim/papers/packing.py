"""Heavy blocks as the paper packs them, event by event (P1 1.4.1).

An arriving URL goes to the work area, or to the buffer if the work area is full. A full buffer is packed into a block.
A block is unpacked once the work area has room for all of it. Buffered URLs move up to the work area. The paper does
not mention this, but otherwise the last URLs of a crawl would never leave the buffer.
"""

from kadcrawl.balance.level import BlockLoad


class Packing:
    """The URLs of one peer, counted: in its work area of `blocks_wide` blocks of `block` URLs, buffer and blocks."""

    def __init__(self, blocks_wide: int, block: int) -> None:
        self.work_area = blocks_wide * block
        self.block = block
        self.inside = 0
        """URLs in the work area."""
        self.buffer = 0
        self.blocks = 0

    @property
    def pending(self) -> int:
        return self.inside + self.buffer + self.blocks * self.block

    @property
    def free(self) -> int:
        return self.work_area - self.inside

    @property
    def level(self) -> float:
        """S - Wf/H."""
        return self.blocks - self.free / self.block

    @property
    def load(self) -> BlockLoad:
        """The same peer, counted as kadcrawl does."""
        return BlockLoad(self.pending, self.work_area, self.block)

    def arrived(self) -> None:
        """Take in one URL."""
        if self.inside < self.work_area:
            self.inside += 1
            return
        self.buffer += 1
        if self.buffer == self.block:
            self.buffer = 0
            self.blocks += 1

    def crawled(self) -> None:
        """Let go of one URL."""
        assert self.inside, "a URL is crawled from the work area"
        self.inside -= 1
        if self.buffer or self.blocks:
            self._unpack()

    def taken(self, blocks: int) -> None:
        """Take blocks of another peer."""
        self.blocks += blocks
        self._unpack()

    def given(self, blocks: int) -> None:
        """Remove blocks: first the packed ones, then URLs from the buffer and from the work area."""
        packed = min(blocks, self.blocks)
        self.blocks -= packed
        urls = (blocks - packed) * self.block
        assert urls <= self.pending, "what is given was there"
        self.buffer, self.inside = max(0, self.buffer - urls), self.inside - max(0, urls - self.buffer)
        self._unpack()

    def resized(self, blocks_wide: int) -> None:
        """Change the work area. URLs that no longer fit go behind all others."""
        self.work_area = blocks_wide * self.block
        self.buffer += max(0, self.inside - self.work_area)
        self.inside = min(self.inside, self.work_area)
        self.blocks += self.buffer // self.block
        self.buffer %= self.block
        self._unpack()

    def _unpack(self) -> None:
        moved = min(self.buffer, self.free)
        self.inside += moved
        self.buffer -= moved
        unpacked = min(self.blocks, self.free // self.block)
        self.inside += unpacked * self.block
        self.blocks -= unpacked
