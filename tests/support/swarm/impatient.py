"""The command kadcrawl with short time-outs between its peers, for tests of the time after a death.

`python -m tests.support.swarm.impatient` runs like `kadcrawl`. The peers of `kadcrawl` take over ten seconds to give
each other up, because a busy machine must not look like a death.
"""

from pathlib import Path

from kadcrawl.cli import main
from kadcrawl.cli.local import child_main, child_process, peer_life
from kadcrawl.overlay import OverlaySettings

ROOT = Path(__file__).parents[3]
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.support.swarm.impatient import peer; peer()"
SETTINGS = OverlaySettings(
    heartbeat_s=1.0,
    resend_s=0.3,
    timeout_s=1.0,
    misses_suspect=peer_life.LOCAL.misses_suspect,
    misses_evict=peer_life.LOCAL.misses_evict,
    miss_spacing_s=(0.25, 0.25),
)


def peer() -> None:
    """Live as one of its peers."""
    peer_life.LOCAL = SETTINGS
    child_main.main()


if __name__ == "__main__":
    child_process.PROGRAM = PROGRAM
    peer_life.LOCAL = SETTINGS  # For peers in this process.
    main()
