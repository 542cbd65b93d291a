"""The simulated loop of these tests."""

from tests.support.swarm.sim_loop import loop

__all__ = ["loop"]
