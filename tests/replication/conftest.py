"""The simulated swarm of these tests."""

from tests.support.swarm.sync_swarm import play

__all__ = ["play"]
