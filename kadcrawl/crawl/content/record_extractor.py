"""The record extractor is a peer's side of the worker process (record_worker.py): pages go in, records or a reason come
out.

The worker takes one page at a time, and the others wait, and with them the crawl. A worker that takes too long or too
much memory, or crashes, is killed and another started. Only a fresh worker can convict a page: a worker that had read
earlier pages as well, or that was killed from outside, is replaced, and the page is tried once more.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import msgspec

from kadcrawl.crawl.content.page import Page
from kadcrawl.crawl.content.record_worker import LENGTH_BYTES, START_S, Ask, Begin, WorkerReply, framed
from kadcrawl.errors import StartError
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.page_rules import RecordRule

REPLY_BYTES_BESIDE_RECORDS_MAX = 64 * 1024
"""Limit on the bytes of a worker's reply beside its records."""
START_TRIES = 3
START_AGAIN_S = 5.0
"""Seconds between tries to start another worker, if the machine has no memory or files for it."""


@dataclass(frozen=True, slots=True)
class ExtractedRecords:
    """The records of a page, or the reason for none."""

    records: Sequence[msgspec.Raw] = ()
    """JSON objects."""
    error: str | None = None
    """The reason that a page with matching rules gave no records, or None."""


class Extraction(Protocol):
    """Takes records out of pages."""

    async def start(self) -> None:
        """Get ready. Raises StartError if this machine lacks a hook."""

    async def extract(self, rule: int, page: Page) -> ExtractedRecords:
        """Return the records of a page by this one of the rules. Raises nothing."""

    async def close(self) -> None: ...


class _Died(Exception):
    """The worker ended in the middle of a page, and why."""


class WorkerExtraction:
    """Extraction in a process of its own."""

    def __init__(self, rules: tuple[RecordRule, ...], limits: Limits) -> None:
        self._rules = rules
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self._answered = 0
        """Pages this worker has answered."""
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Start the worker and let it import the hooks. Raises StartError if it cannot."""
        try:
            reply = await self._begin()
        except (OSError, TimeoutError, _Died) as error:
            await self.close()
            raise StartError(f"cannot start the worker that takes records out of pages: {error}") from None
        if reply.error is not None:
            await self.close()
            raise StartError(
                f"this machine lacks a hook of the job: {reply.error}; it must be importable from "
                "where kadcrawl runs, so put its module into that directory or install it"
            )

    async def extract(self, rule: int, page: Page) -> ExtractedRecords:
        """Return the records of a page by this one of the rules, or why it has none."""
        if len(page.content) > self._limits.record_page_bytes_max:
            return ExtractedRecords(error=f"the page has more than {self._limits.record_page_bytes_max} bytes")
        async with self._turn:
            frame = framed(Ask(rule, page))  # Not before: it is as large as the page, and many wait.
            try:
                return await self._try(frame)
            except BaseException:
                await self.close()  # Its answer would be taken for that to the next page.
                raise

    async def close(self) -> None:
        """End the worker, and every process that it started."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            assert process.stdin is not None, "stdin is a pipe"
            process.stdin.close()
            await process.wait()

    async def _try(self, frame: bytes) -> ExtractedRecords:
        while True:
            if self._process is None and (why := await self._restarted()) is not None:
                return ExtractedRecords(error=why)
            used = self._answered > 0
            try:
                async with asyncio.timeout(self._limits.record_time_s):
                    reply = await self._ask(frame)
            except TimeoutError:
                await self.close()
                return ExtractedRecords(error=f"timeout: not done after {self._limits.record_time_s:g} s")
            except _Died as error:
                await self.close()
                if used:
                    continue
                return ExtractedRecords(error=str(error))
            self._answered += 1
            if reply.spent:
                await self.close()
                if used:
                    continue
            return ExtractedRecords(reply.records, reply.error)

    async def _restarted(self) -> str | None:
        """Start another worker. Return the reason if that fails, or None."""
        why = ""
        for attempt in range(START_TRIES):
            if attempt:
                await asyncio.sleep(START_AGAIN_S)
            try:
                await self.start()
            except StartError as error:
                why = str(error)
            else:
                return None
        return why

    async def _begin(self) -> WorkerReply:
        self._answered = 0
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # From the directory it runs in nothing is imported but hooks.
            "-c",
            "from kadcrawl.crawl.content.record_worker import main; main()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith("KADCRAWL_")},  # Passwords.
            start_new_session=True,  # Ctrl-C is the peer's to understand, and what it starts can be killed with it.
        )
        async with asyncio.timeout(START_S):
            return await self._ask(framed(Begin(self._rules, self._limits)))

    async def _ask(self, frame: bytes) -> WorkerReply:
        process = self._process
        assert process is not None, "started before asked"
        assert process.stdin is not None, "stdin is a pipe"
        assert process.stdout is not None, "stdout is a pipe"
        try:
            process.stdin.write(frame)
            await process.stdin.drain()
            length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
            if length > self._limits.record_bytes_max + REPLY_BYTES_BESIDE_RECORDS_MAX:
                raise _Died("the worker answered what is no answer")
            return msgspec.json.decode(await process.stdout.readexactly(length), type=WorkerReply)
        except (asyncio.IncompleteReadError, ConnectionError):
            status = await process.wait()
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with exit status {status}"
            raise _Died(f"the worker ended {how}") from None
        except msgspec.DecodeError:
            raise _Died("the worker answered what is no answer") from None
