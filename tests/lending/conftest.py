"""The peers and the lender that these tests share."""

from tests.support.swarm.lender_bench import play_loans
from tests.support.swarm.peers import lines, make_peer, pytest_asyncio_loop_factories

__all__ = ["lines", "make_peer", "play_loans", "pytest_asyncio_loop_factories"]
