"""The simulator: worlds in virtual time that run unmodified peers, and judges of their crawls.

sim may import kadcrawl. kadcrawl never imports sim. The package is installed as `kadcrawl_sim`. The names exported
here, and the pytest fixture `simulated_swarm` (`pytest_plugin.py`), are for users' own tests.

World: `loop.py` is the asyncio event loop in virtual time, `network.py` the hosts, datagrams and faults of links,
`tcp.py` the streams, `ports.py` the interfaces between them. `machines.py` runs peers and leaves on hosts, `disk.py` is
the disk of a machine, `overlays.py` a swarm of overlays alone.

Web: `synthetic_web.py` and `synthetic_sites.py` compute a web of any size, `web_server.py` serves it. The sample web
(`sample_web.py`, `sample_pages.py`, `sample_traps.py`) runs on real sockets, and `judge.py` judges its access log.

Trial: `draw.py` draws a `plan.py` of faults from a seed, `trial.py` runs it (with `ambush.py` and `peer_logs.py`).
`observer.py` watches all machines (with `lending.py`, `trails.py`, `holders.py`, `histories.py`), `judges.py` finds the
broken promises, `sometimes.py` counts awkward moments. `campaign.py` runs many trials, `shrink.py` shortens a failing
plan, `mutants.py` plants bugs, `big.py` runs one large swarm, `dashboard_recording.py` records one for the tests of the
dashboard, and `dashboard_viewer.py` looks at a dashboard during a trial. ``python -m sim`` (`__main__.py`) is their
command.

Users' tests: `user_job.py` runs a user's own job on simulated peers, over the pages of a `user_web.py` and under the
`faults.py` that the user names. `reference.py` computes the expected result by one undisturbed peer, `scene.py` joins
web, job and expectation, and `simulated_crawl.py` is the outcome.

`papers/` repeats the experiments of the papers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .faults import (
        Fault,
        Freeze,
        FullDisk,
        Join,
        Kill,
        Leave,
        LossyNetwork,
        NoWeb,
        Partition,
        Restart,
        random_faults,
    )
    from .simulated_crawl import Fetched, SimulatedCrawl
    from .synthetic_web import SyntheticResponse
    from .user_job import simulate

_ROOMS = {
    "faults": ("Fault", "Freeze", "FullDisk", "Join", "Kill", "Leave", "LossyNetwork", "NoWeb", "Partition", "Restart"),
    "simulated_crawl": ("Fetched", "SimulatedCrawl"),
    "synthetic_web": ("SyntheticResponse",),
    "user_job": ("simulate",),
}
_LATE = {name: room for room, names in _ROOMS.items() for name in names} | {"random_faults": "faults"}
"""Name -> module, loaded on first use (PEP 562): pytest imports this package in every run where it is installed."""

__all__ = [
    "Fault",
    "Fetched",
    "Freeze",
    "FullDisk",
    "Join",
    "Kill",
    "Leave",
    "LossyNetwork",
    "NoWeb",
    "Partition",
    "Restart",
    "SimulatedCrawl",
    "SyntheticResponse",
    "random_faults",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
