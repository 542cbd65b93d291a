"""The census: one wave that asks every peer of the swarm to describe itself.

Tests: tests/peer/test_peer.py, tests/peer/membership/test_departed.py
"""

from typing import Literal

from kadcrawl.link.wire.census_rows import read_rows
from kadcrawl.link.wire.messages import ROWS_MAX, Answer, Census, SwarmStatus, Watched
from kadcrawl.overlay.waves.wave import Waves
from kadcrawl.peer.membership.departed import each_once

WATCH_DEADLINE_S = 6.0
"""Time that a look of a dashboard may take, so that a peer that died is shown within ten seconds."""


async def take_census(waves: Waves, unit: Literal["", "pages", "bytes"] = "") -> SwarmStatus:
    """Ask every peer of the swarm for its row, and return each peer once, at most `ROWS_MAX` rows.

    `unit` names the budget that is shared out by the rows.
    """
    return await _read(await waves.ask_all(Census(unit=unit)), for_budget=bool(unit))


async def watch_swarm(waves: Waves, since_s: float) -> tuple[SwarmStatus, Watched]:
    """Ask as `take_census` does, with the details of each peer and what happened in the last `since_s` seconds."""
    answer = await waves.ask_all(Census(since_s), WATCH_DEADLINE_S)
    return await _read(answer), answer.watched or Watched()


async def _read(answer: Answer, *, for_budget: bool = False) -> SwarmStatus:
    rows = [*await read_rows(answer.rows), *await read_rows(answer.left)]
    return SwarmStatus(answer.tally, each_once(rows, for_budget=for_budget)[:ROWS_MAX])
