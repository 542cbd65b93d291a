"""A peer of a local crawl in the process of its parent: a task, whose orders and reports are objects.

All peers share what one process needs only once (peer/shared_process.py), and one log.

Tests: tests/cli/local/test_child_task.py, tests/cli/test_command_in_process.py
"""

import asyncio
import logging
from contextvars import copy_context
from itertools import count
from pathlib import Path

from kadcrawl.cli.local import peer_life
from kadcrawl.cli.local.protocol import Assignment, Go, Report, Unable
from kadcrawl.errors import KadcrawlError
from kadcrawl.peer.shared_process import SharedProcess
from kadcrawl.system.event import Event
from kadcrawl.system.mailbox import Mailbox
from kadcrawl.system.peer_name import peer_name
from kadcrawl.system.start_up_memory import FilePages

REPORTS_A_SECOND = 64
"""Reports of the figures of all peers together: a report costs a tenth of a millisecond, and a person sees two a
second."""
DROPS_INTERVAL_S, DROPS_OFTEN = 0.5, 120
"""Seconds between two drops of pages of files, and the number of drops after which the rest are seldom: by then all
peers have started. With 200 peers a drop takes some 4 ms."""
DROPS_A_LOOK = 8
"""Drops for each look which pages can be dropped. With 200 peers a look takes some 20 ms."""
SELDOM_INTERVAL_S = 60.0

log = logging.getLogger(__name__)


async def drop_pages() -> None:
    """Drop pages of files now and then, until cancelled: each start, and each commit of a journal, uses others."""
    pages = FilePages()
    for number in count():
        is_seldom = number >= DROPS_OFTEN
        await asyncio.sleep(SELDOM_INTERVAL_S if is_seldom else DROPS_INTERVAL_S)
        if is_seldom or number % DROPS_A_LOOK == 0:
            pages.look_and_drop()
        else:
            pages.drop()


class QueuedOrders:
    """Orders of a parent in the same process."""

    def __init__(self) -> None:
        self._orders: Mailbox[Go | None] = Mailbox()
        self._next: Go | None = None
        self._said_all = False
        self.obeyed = False
        """An order has been carried out."""

    @property
    def ended(self) -> bool:
        """The parent will say no more."""
        return self._said_all and self._next is None and len(self._orders) <= 1

    def put(self, order: Go) -> None:
        """Add an order, unless the orders have ended."""
        if not self._said_all:
            self._orders.put(order)

    def end(self) -> None:
        """Add no more orders."""
        if not self._said_all:
            self._said_all = True
            self._orders.put(None)

    async def next(self) -> Go | None:
        """Return the next order, or None once there will be no more."""
        if self._next is None:
            self._next = await self._orders.get()
            if self._next is None:
                self._orders.put(None)  # For whoever asks next.
        return self._next

    def carried_out(self) -> None:
        """The next order is done with."""
        self._next = None
        self.obeyed = True


class QueuedReports:
    """Reports to a parent in the same process, which reads them without pause."""

    def __init__(self) -> None:
        self.queue: Mailbox[Report | None] = Mailbox()

    def send(self, report: Report) -> None:
        """Send a report."""
        self.queue.put(report)

    def send_if_room(self, report: Report) -> bool:
        """Send a report. There is always room."""
        self.send(report)
        return True


class ChildTask:
    """The running task of one peer."""

    def __init__(self, assignment: Assignment, shared: SharedProcess, interval_s: float) -> None:
        """Start the peer. It reports its figures every `interval_s` seconds."""
        self._orders = QueuedOrders()
        self._reports = QueuedReports()
        life = peer_life.PeerLife(
            assignment,
            shared.environment(),
            self._orders,
            self._reports,
            Event(),  # Ctrl-C is the parent's to understand.
            interval_s=interval_s,
        )
        context, name = copy_context(), Path(assignment.data).name
        context.run(peer_name.set, name)
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(life), name=name, context=context)
        # Not in the task, which may be ended before it begins.
        self._task.add_done_callback(lambda task: self._reports.queue.put(None))
        self._exit_status = 1

    @property
    def is_running(self) -> bool:
        """False once the task has ended."""
        return not self._task.done()

    def say(self, order: Go) -> None:
        """Send an order. To a peer that ends it is lost, which the end of the reports tells."""
        self._orders.put(order)

    def end_orders(self) -> None:
        """Say no more, so that the peer finishes its work under way and ends."""
        self._orders.end()

    async def next_report(self) -> Report | None:
        """Return the next report, or None when there will be no more."""
        return await self._reports.queue.get()

    async def wait(self) -> int:
        """Return the exit status that a process of this peer would have, once the task has ended."""
        await asyncio.wait((self._task,))
        return self._exit_status

    def kill(self) -> None:
        """End the task if it still runs. What the peer was about to fetch is fetched by others, or by its next run."""
        self._task.cancel()

    async def _run(self, life: peer_life.PeerLife) -> None:
        try:
            await life.run()
            self._exit_status = 0
        except KadcrawlError as error:
            self._reports.send(Unable(str(error)))
            self._exit_status = 2
        except Exception:
            log.exception("peer.bug")


class TaskLauncher:
    """Starts peers in this process."""

    def __init__(self, peers: int) -> None:
        """`peers` is the number of peers to come."""
        self._shared = SharedProcess(overlay=peer_life.LOCAL)
        self._interval_s = max(peer_life.REPORT_INTERVAL_S, peers / REPORTS_A_SECOND)

    async def launch(self, assignment: Assignment) -> ChildTask:
        """Start a peer with this assignment."""
        return ChildTask(assignment, self._shared, self._interval_s)
