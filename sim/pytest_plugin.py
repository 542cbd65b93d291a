"""The pytest fixture `simulated_swarm`: a test runs its own job on simulated peers under faults.

pytest loads this file in every run where kadcrawl is installed, so it imports nothing until the fixture is used.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .user_job import Simulate


@pytest.fixture
def simulated_swarm() -> "Simulate":
    """Run a job on simulated peers: ``simulated_swarm(Job(...), peers=8, faults=[Kill(at_s=5.0, peer=2)])``."""
    from .user_job import simulate

    return simulate
