"""`WarcIndexer` writes the index of each WARC file that is finished (cdxj.py), beside the crawl.

A peer begins the next WARC file at a size, and the file before is indexed then, a few records at a time, by a thread.
A file whose index is missing or older, as after a crash, is indexed at the next start.

Tests: tests/crawl/output/test_warc_indexer.py
"""

import asyncio
import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kadcrawl.crawl.output.cdxj import is_indexed, write_index
from kadcrawl.crawl.output.outputs import Outputs

LOOK_S = 30.0
"""Seconds between two looks for a finished file."""
STEPS_PER_TURN = 200
"""Records that are read before other work gets its turn: some milliseconds."""
PAUSE_S = 0.05
"""Seconds between two turns, so that an index takes a tenth of a core, and half a minute for a gigabyte of pages."""

log = logging.getLogger(__name__)


class WarcIndexer:
    """The indexer of one peer's directory."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._written = ""
        """The file that was being written at the last look."""

    async def run(self) -> None:
        """Index each WARC file once it is finished. Return never."""
        while True:
            if self._outputs.warc_file != self._written:
                self._written = self._outputs.warc_file
                await self.index_all()
            await asyncio.sleep(LOOK_S)

    async def index_all(self) -> None:
        """Index all finished files without a current index."""
        try:
            for warc in self._outputs.finished_warcs():
                if not is_indexed(warc):
                    await self._index(warc)
        except OSError as error:  # The crawl needs no index, and the next finished file is another try.
            log.warning("disk.warc_not_indexed why=%s", error)

    async def _index(self, warc: Path) -> None:
        loop, steps = asyncio.get_running_loop(), write_index(warc)
        while await loop.run_in_executor(None, _turn, steps):  # noqa: ASYNC110 -- a pause between two turns
            await asyncio.sleep(PAUSE_S)


def _turn(steps: Iterator[None]) -> bool:
    """Take some steps. Return whether there may be more."""
    return sum(1 for _ in islice(steps, STEPS_PER_TURN)) == STEPS_PER_TURN
