"""Test the figures of what the dashboard costs."""

import os
import time
from dataclasses import replace

from scripts.bench_web import IDLE_SHARE_MAX, VIEWED_SHARE_MAX, WebFigures, cpu_s, shares_of

FIGURES = WebFigures(
    peers=50,
    viewers=5,
    seconds=1.0,
    idle_share=0.002,
    idle_share_without=0.002,
    share=0.1,
    share_viewed=0.11,
    events_per_s=1.0,
    kb_per_s=3.0,
)


def test_a_dashboard_that_costs_too_much_is_told() -> None:
    assert [] == FIGURES.misses
    idle = replace(FIGURES, idle_share=FIGURES.idle_share_without + IDLE_SHARE_MAX)
    assert ["an idle dashboard costs 1.00% of a core"] == idle.misses
    viewed = replace(FIGURES, share=0.1, share_viewed=0.1 + VIEWED_SHARE_MAX + 0.001)
    assert ["5 viewers cost 3.10% of a core"] == viewed.misses


def test_the_cpu_of_a_process_is_that_of_the_kernel() -> None:
    before, used = time.process_time(), cpu_s(os.getpid())
    while time.process_time() < before + 0.1:
        pass
    assert 0.05 < cpu_s(os.getpid()) - used
    (share,) = shares_of([os.getpid()], 0.01)
    assert 0 <= share
