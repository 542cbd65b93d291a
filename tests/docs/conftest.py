"""The peers that these tests share."""

from tests.support.swarm.peers import make_peer, pytest_asyncio_loop_factories

__all__ = ["make_peer", "pytest_asyncio_loop_factories"]
