"""Tables of memory, made of files in docs/figures.

Tests: tests/docs/test_figures.py
"""

from collections.abc import Callable
from typing import Final

from scripts.bench_memory import AIMS_MB
from scripts.docs.figure_blocks import KeptFigures, table


def idle_memory(kept: KeptFigures) -> str:
    """Return the table of the memory of idle processes."""
    head = ("idle process", "RSS, MB", "aim", "PSS, MB", "private, MB", "CPU s of the start", "modules")
    rows = [
        (
            one["name"],
            f"{one['rss_mb']:.1f}",
            str(AIMS_MB[one["kind"]]),
            f"{one['pss_mb']:.1f}",
            f"{one['private_mb']:.1f}",
            f"{one['cpu_s']:.2f}",
            str(one["modules"]),
        )
        for one in kept["idle-memory"]
    ]
    return f"{table(head, rows)}\n\n{kept.measured('idle-memory')}"


def simulation(kept: KeptFigures) -> str:
    """Return the table of what the simulator costs."""
    cost = kept["simulation"]
    head = ("peers of one swarm", "pages", "MB a peer", "CPU s", "messages", "seeds of 16 peers by CPU second")
    row = (
        f"{cost['peers']:,}",
        f"{cost['pages']:,}",
        f"{cost['mb_a_peer']:.2f}",
        f"{cost['swarm_cpu_s']:.0f}",
        f"{cost['messages']:,}",
        f"{cost['seeds_a_cpu_s']:.2f}",
    )
    return f"{table(head, [row])}\n\n{kept.measured('simulation')}"


MEMORY_BLOCKS: Final[dict[str, Callable[[KeptFigures], str]]] = {"idle-memory": idle_memory, "simulation": simulation}
