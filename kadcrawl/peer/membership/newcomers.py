"""The answers to a newcomer's first questions: the swarm's job (Hello), and the ranges its IDs would split
(FindRanges).

The newcomer's side stands in bootstrap.py and node_id.py.

Tests: tests/peer/membership/test_node_id.py, tests/peer/membership/test_bootstrap.py
"""

from collections.abc import Mapping

from kadcrawl.link.handler import Handler
from kadcrawl.link.peer_score import Misbehavior, MisbehaviorError
from kadcrawl.link.wire.messages import WIRE_VERSION, FindRanges, Hello, Message, Ranges, Welcome, is_spoken
from kadcrawl.peer.membership.node_id import RangeFinder
from kadcrawl.peer.runtime import Runtime


class Newcomers:
    """The answers of one peer to newcomers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._range_finder = RangeFinder()

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {Hello: self._hello, FindRanges: self._find_ranges}

    async def _hello(self, hello: Hello) -> Welcome:
        """Tell the job and the swarm state. A peer of another release misbehaves, also while this one starts."""
        if not is_spoken(hello.version):
            why = f"this swarm speaks version {WIRE_VERSION} of the wire, not {hello.version}: use the same release"
            raise MisbehaviorError(Misbehavior.VERSION, why)
        runtime = self._runtime
        runtime.require_begun()
        orders = runtime.standing_orders.to_wire()
        return Welcome(runtime.job, runtime.paused, runtime.balancing.wait_s, runtime.swarm_state.stamp, orders)

    async def _find_ranges(self, question: FindRanges) -> Ranges:
        return await self._range_finder.find(self._runtime.overlay, question)
