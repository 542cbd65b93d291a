"""The peers that these tests share."""

from tests.support.swarm.peers import lines, make_peer, pytest_asyncio_loop_factories

__all__ = ["lines", "make_peer", "pytest_asyncio_loop_factories"]
