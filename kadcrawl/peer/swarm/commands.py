"""The commands of a person that one peer answers: status, add, retry, pause, resume, stop, leave, rekey and web.

Tests: tests/cli/test_command_live.py, tests/peer/test_peer.py, tests/peer/test_members.py
"""

from collections.abc import Awaitable, Callable, Mapping

from kadcrawl.errors import ConfigError, StartError
from kadcrawl.link.handler import Handler
from kadcrawl.link.peer_score import Misbehavior, MisbehaviorError
from kadcrawl.link.wire.messages import (
    Add,
    AddAgain,
    Added,
    AddedAgain,
    Command,
    GetStatus,
    Message,
    Ok,
    OpenDashboard,
    Refused,
    Rekey,
    RetryFailed,
    Status,
)
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.runtime import Runtime
from kadcrawl.peer.swarm.census import take_census, watch_swarm
from kadcrawl.peer.swarm.fetch_again import fetch_again
from kadcrawl.peer.swarm.retry import refuse_again, retry_failed
from kadcrawl.peer.swarm.seeds import add_seeds
from kadcrawl.peer.swarm.state_gossip import StateGossip
from kadcrawl.urls import seed


class Commands:
    """The answers of one peer to a person's commands."""

    def __init__(
        self,
        runtime: Runtime,
        gossip: StateGossip,
        leave_soon: Callable[[], None],
        open_dashboard: Callable[[], Awaitable[tuple[str, int]]],
    ) -> None:
        """`leave_soon` ends the peer after its range is handed over, and `open_dashboard` opens its dashboard."""
        self._runtime = runtime
        self._gossip = gossip
        self._leave_soon = leave_soon
        self._open_dashboard = open_dashboard

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {
            GetStatus: self._status,
            Add: self._add,
            RetryFailed: self._retry,
            AddAgain: self._add_again,
            Command: self._command,
            Rekey: self._rekey,
            OpenDashboard: self._open,
        }

    async def _status(self, message: GetStatus) -> Status:
        runtime, watched = self._runtime, None
        if message.since_s is None:
            answer = await take_census(runtime.waves)
        else:
            answer, watched = await watch_swarm(runtime.waves, message.since_s)
        orders = runtime.standing_orders.to_wire()
        return Status(runtime.job, answer, runtime.ended, runtime.paused, orders, watched)

    async def _add(self, add: Add) -> Message:
        runtime = self._runtime
        try:
            seeds = [seed(url) for url in add.urls]
            # In this order, as a new seed may fail at once, and must not be fetched again.
            remembers = runtime.job.history == "exact"
            again = (await fetch_again(runtime, seeds, only_failed=True))["again"] if remembers else 0
            await add_seeds(runtime, seeds)
        except ConfigError as error:
            return Refused(str(error))
        return Added(again)

    async def _retry(self, message: RetryFailed) -> Message:
        try:
            return await retry_failed(self._runtime, message.order)
        except ConfigError as error:
            return Refused(str(error))

    async def _add_again(self, add: AddAgain) -> Message:
        try:
            refuse_again(self._runtime.job)
            seeds = [seed(url) for url in add.urls]
            # In this order, as a new seed may be fetched at once, and must not be fetched again.
            outcomes = await fetch_again(self._runtime, seeds)
            await add_seeds(self._runtime, seeds)
        except ConfigError as error:
            return Refused(str(error))
        return AddedAgain(outcomes["again"], outcomes.total() - outcomes["again"])

    async def _command(self, command: Command) -> Ok:
        if command.verb == "leave":
            self._leave_soon()
        else:
            await self._gossip.order(command.verb)
        return Ok()

    async def _rekey(self, message: Rekey) -> Ok:
        if message.peer != self._runtime.contact.id:
            raise MisbehaviorError(
                Misbehavior.CLAIM, "only whoever runs a peer changes its key: on its machine, by its directory"
            )
        change_key(self._runtime, SwarmKey(message.key))
        return Ok()

    async def _open(self, message: OpenDashboard) -> Message:
        if message.peer != self._runtime.contact.id:
            raise MisbehaviorError(
                Misbehavior.CLAIM, "only whoever runs a peer opens its dashboard: on its machine, by its directory"
            )
        try:
            await self._open_dashboard()
        except StartError as error:
            return Refused(str(error))
        return Ok()


def change_key(runtime: Runtime, key: SwarmKey) -> None:
    """Use another key of the swarm. The former key stays good for an hour.

    An older key that is still good ends at once: a peer that has only that key is out. Raises StartError if the key
    cannot be kept, ConfigError if the swarm has no key.
    """
    rotation = runtime.resources.key_rotation
    if rotation is None:
        raise ConfigError("this swarm has no key to be changed: begin it anew with one")
    rotation.change(key)
