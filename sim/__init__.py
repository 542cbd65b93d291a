"""Worlds to crawl and judges of what was done there. May import kadcrawl, is never imported by it.

Installed as `kadcrawl_sim`: what is named here, and the pytest fixture `simulated_swarm`, are for users' own tests.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .faults import Fault, Freeze, FullDisk, Join, Kill, Leave, LossyNetwork, Partition, Restart, random_faults
    from .simulated_crawl import Fetched, SimulatedCrawl
    from .synthetic_web import SyntheticResponse
    from .user_job import simulate

_ROOMS = {
    "faults": ("Fault", "Freeze", "FullDisk", "Join", "Kill", "Leave", "LossyNetwork", "Partition", "Restart"),
    "simulated_crawl": ("Fetched", "SimulatedCrawl"),
    "synthetic_web": ("SyntheticResponse",),
    "user_job": ("simulate",),
}
_LATE = {name: room for room, names in _ROOMS.items() for name in names} | {"random_faults": "faults"}
"""Loaded when first asked for (PEP 562): pytest imports this package in each run of whoever has installed it."""

__all__ = [
    "Fault",
    "Fetched",
    "Freeze",
    "FullDisk",
    "Join",
    "Kill",
    "Leave",
    "LossyNetwork",
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
