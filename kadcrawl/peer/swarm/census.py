"""The census: one wave that asks every peer of the swarm to describe itself.

Tests: tests/peer/test_peer.py, tests/peer/membership/test_departed.py
"""

from kadcrawl.link.wire.census_rows import read_rows
from kadcrawl.link.wire.messages import ROWS_MAX, Census, SwarmStatus
from kadcrawl.overlay.waves.wave import Waves
from kadcrawl.peer.membership.departed import each_once


async def take_census(waves: Waves) -> SwarmStatus:
    """Ask every peer of the swarm for its row, and return each peer once, at most `ROWS_MAX` rows."""
    answer = await waves.ask_all(Census())
    rows = [*await read_rows(answer.rows), *await read_rows(answer.left)]
    return SwarmStatus(answer.tally, each_once(rows)[:ROWS_MAX])
