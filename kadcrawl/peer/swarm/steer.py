"""The conversation in which one peer gives standing orders to the swarm.

The wave of the orders is sent again until every peer has answered. A part of the swarm that does not answer hears of
the orders by heartbeats (state_gossip.py), and a peer that joins hears of them with the job.

Tests: tests/peer/test_site_orders.py
"""

import logging
from collections.abc import Iterable, Mapping

from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import Message, Refused
from kadcrawl.link.wire.order_messages import GiveOrders, OrdersGiven, StandingOrder, Steer
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.retry import counted
from kadcrawl.peer.swarm.standing_orders import named

log = logging.getLogger(__name__)


async def give_orders(runtime: Runtime, wanted: Iterable[StandingOrder]) -> OrdersGiven:
    """Give these orders to the swarm, and return how far they have come, with the number of URLs dropped by them.

    The orders are on the disk of this peer. Raises ConfigError for an order without a meaning.
    """
    orders = runtime.standing_orders.give(
        [named(order, runtime.job) for order in wanted], runtime.contact.id, runtime.resources.clock.now()
    )
    with runtime.seeding():
        question = Steer(orders)
        try:
            answer = await runtime.waves.reach_all(question)
        except RemoteError as error:
            log.warning("order.late orders=%d why=%s", len(orders), error)
            answer = await runtime.waves.ask_all(question)
        answer = await counted(runtime, question, answer)
        await runtime.resources.store.journal.durable()
    tally = answer.tally
    return OrdersGiven(tally.missing, sum(one.urls for one in tally.retried), tally.retrying)


class Steerer:
    """The answers of one peer to the orders of a person."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {GiveOrders: self._give}

    async def _give(self, message: GiveOrders) -> Message:
        try:
            return await give_orders(self._runtime, message.orders)
        except ConfigError as error:
            return Refused(str(error))
