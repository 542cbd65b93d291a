"""The repetition of P1, Table 3, reads processes and the machine as the kernel shows them."""

import os
from pathlib import Path

import pytest

from scripts.five_peers.run import PAGE_BYTES
from scripts.node_usage import (
    MachineLook,
    ProcessLook,
    cpu_percent,
    machine_look,
    machine_usage,
    node_usage,
    process_look,
)


def test_a_process_is_read_with_its_ticks_and_memory(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    # The name of a process may hold anything.
    fields = " ".join(["S", *["0"] * 10, "150", "50", *["0"] * 10])
    (tmp_path / "7/stat").write_text(f"7 (a ) b) {fields}")
    (tmp_path / "7/status").write_text("Name:\ta\nVmHWM:\t9 kB\nVmRSS:\t80 kB\n")
    assert ProcessLook(200 / os.sysconf("SC_CLK_TCK"), 81_920, 5) == process_look(7, 5, tmp_path)


def test_the_use_of_a_node_is_what_it_took_between_two_looks() -> None:
    first, last = ProcessLook(1.0, 50_000_000, 10), ProcessLook(3.0, 60_000_000, 50)
    used = node_usage(first, last, 10.0, 600_000_000, 1.5)
    assert (4.0, 20.0, 1.5, 60.0, 10.0) == (
        used.pages_s, used.cpu_percent, used.idle_cpu_percent, used.memory_mb, used.memory_percent,
    )  # fmt: skip
    assert used.page_kb_s == pytest.approx(4 * PAGE_BYTES / 1e3)
    assert cpu_percent(last, last, 10.0) == 0.0


def test_the_use_of_the_machine_is_what_all_took() -> None:
    first, last = MachineLook(10.0, 100.0, 3, 4, 1_000), MachineLook(12.0, 108.0, 2, 4, 11_000)
    used = machine_usage(first, last, 4.0)
    assert (25.0, 50.0, 2.5) == (used.cpu_percent, used.memory_percent, used.loopback_kb_s)


def test_this_machine_can_be_looked_at() -> None:
    look = machine_look()
    assert 0 < look.busy_s <= look.all_s
    assert 0 < look.used_bytes < look.memory_bytes
