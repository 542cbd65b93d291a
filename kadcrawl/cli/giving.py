"""A command gives standing orders: to a running swarm, or else through the journals of a directory at rest.

Tests: tests/cli/commands/test_set.py, tests/cli/local/test_orders_at_rest.py
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from kadcrawl.cli.keys import key_to_ask
from kadcrawl.cli.options import is_given
from kadcrawl.cli.targets import directories, goes_on, peer_directories, rests, targets
from kadcrawl.link.wire.given_order import silent_parts
from kadcrawl.link.wire.order_messages import GiveOrders, OrdersGiven, StandingOrder


@dataclass(frozen=True, slots=True)
class Giving:
    """The way of some orders into a swarm."""

    given: OrdersGiven
    goes_on: str | None
    """The command with which the crawl goes on, if no peer runs. None if a peer has taken the orders."""
    is_local: bool = True
    """No peer of the crawl has another directory, as far as known here."""

    def say_how_far(self) -> None:
        """Print that some peers have not heard of the orders yet."""
        if self.goes_on is not None:
            holds = f"holds when {self.goes_on} goes on{self._elsewhere}"
            click.echo(f"kadcrawl: no peer runs, so the order is journaled, and {holds}", err=True)
        elif self.given.parts_missing:
            click.echo(silent_parts(self.given.parts_missing))

    @property
    def _elsewhere(self) -> str:
        if self.is_local:
            return ""
        return ". Peers that run elsewhere hear of it only then: --peer HOST:PORT gives it to one of them"


def give(peer: tuple[str, int], data: Path, key_file: Path | None, orders: Sequence[StandingOrder]) -> Giving:
    """Give orders to the swarm of this peer or directory. Raises ConfigError, RemoteError, StartError."""
    resting = [] if is_given("peer") else directories(data)
    if rests(resting):
        from kadcrawl.cli.local.orders_at_rest import give_at_rest  # Not at the top: it loads the store.

        give_at_rest(resting, orders)
        return Giving(OrdersGiven(0), goes_on(data), is_local=bool(peer_directories(data)))
    asked = targets(peer, data, key_to_ask(key_file, data))
    return Giving(asked.ask(GiveOrders([*orders]), OrdersGiven), None)
