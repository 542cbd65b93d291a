"""`DashboardViewer`: somebody who looks at the dashboard of one machine while faults happen, and notes what it says.

The gatherer runs on the machine, as for a browser. What it says is compared with the machines at the moments of the
question and of the answer: figures that only grow must lie between these two.
"""

import asyncio
from collections.abc import Callable

from kadcrawl.errors import KadcrawlError
from kadcrawl.link.wire.peer_state import PeerState, state_text
from kadcrawl.peer.dashboard.source import dashboard_source
from kadcrawl.peer.dashboard.swarm_access import access_of
from kadcrawl.peer.monitoring.monitored_peer import of_full_peer
from kadcrawl.web.live_document import LiveDocument
from kadcrawl.web.merge_patch import Json

from .judges import DashboardSight
from .machines import Machine, Machines

APART_S = 1.0
"""Virtual seconds between two looks, as of the dashboard of a small swarm."""
ENTERING = {state_text(state) for state in (PeerState.STARTING, PeerState.JOINING)}

Pages = dict[str, tuple[int, int]]
"""ID of a peer -> (its incarnation, its pages)."""


class DashboardViewer:
    """The viewer of one trial."""

    def __init__(
        self, machines: Machines, number: int | None, now: Callable[[], float], unfinished: Callable[[], int]
    ) -> None:
        """`number` is the machine whose dashboard is looked at, or None for no viewer.

        `unfinished` returns the URLs that are left to do at this moment, as far as the world knows.
        """
        self._machines = machines
        self._number = number
        self._now = now
        self._unfinished = unfinished
        self._looking: asyncio.Task[None] | None = None
        self._looked_at: object = None
        """The peer whose dashboard is open."""
        self.seen: list[DashboardSight] = []

    def look(self) -> None:
        """Open the dashboard of the machine, unless it is open or the machine is down."""
        machine = self._machines.machines.get(self._number) if self._number is not None else None
        if machine is None or not machine.alive or machine.peer is None or not machine.peer.begun:
            return
        if self._looked_at is not machine.peer:
            self._looked_at = machine.peer
            self._looking = machine.host.spawn(self._watch(machine), name="dashboard")

    async def look_once_more(self) -> None:
        """Look at the dashboard of a machine that is up, after all is over."""
        if self._number is None:
            return
        up = [one for one in self._machines.live if one.peer is not None and one.peer.begun and not one.leaves]
        chosen = next((one for one in up if one.number == self._number), up[0] if up else None)
        if chosen is not None:
            await chosen.host.spawn(self._watch(chosen, looks=1, is_last=True))

    async def _watch(self, machine: Machine, looks: int | None = None, *, is_last: bool = False) -> None:
        peer = machine.peer
        assert peer is not None, "its dashboard was opened"
        source = dashboard_source(of_full_peer(peer.runtime, lambda: 0), access_of(peer.runtime, peer.state_gossip))
        live = LiveDocument("simulated")
        while machine.peer is peer and not machine.leaves and looks != 0:
            looks = None if looks is None else looks - 1
            asked_s, before = self._now(), self._pages()
            try:
                document = await source.gather()
                live.take(document, source.now(), APART_S)
            except KadcrawlError:
                await asyncio.sleep(APART_S)
                continue
            except Exception as error:
                if machine.peer is peer and not peer.leaving:
                    self._machines.errors.append(f"the dashboard of machine {machine.number} failed: {error!r}")
                return
            self._note(machine, asked_s, before, document, is_last=is_last)
            await asyncio.sleep(APART_S)

    def _note(self, machine: Machine, asked_s: float, before: Pages, document: Json, *, is_last: bool) -> None:
        verdict, after = document["crawl"]["verdict"], self._pages()
        shown = {name: one for name, one in document["peers"].items() if one["kind"] == "full"}
        untrue = []
        for name, one in shown.items():
            if name in before and name in after and before[name][0] == after[name][0]:
                least, most = before[name][1], after[name][1]
                if not least <= one["pages"] <= most:
                    untrue.append(f"{one['pages']} pages of {name[:8]}, which had {least} to {most}")
        there = {name for name, one in shown.items() if one["state"] not in ENTERING}
        self.seen.append(
            DashboardSight(
                asked_s=asked_s,
                told_s=self._now(),
                machine=machine.number,
                word=verdict["word"],
                says_done=verdict["done"],
                unfinished=self._unfinished() if verdict["done"] else 0,
                untrue=tuple(untrue),
                unshown=len(after.keys() - shown.keys()),
                ghosts=len(there - after.keys()),
                is_last=is_last,
            )
        )

    def _pages(self) -> Pages:
        """Return the pages of all peers that are part of the swarm at this moment."""
        return {
            machine.peer.id: (machine.incarnations, machine.peer.counters.pages)
            for machine in self._machines.live
            if machine.peer is not None and machine.peer.begun and not machine.peer.leaving
        }
