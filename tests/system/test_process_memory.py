"""Test the memory of this process."""

import sys

import pytest

from kadcrawl.system.process_memory import resident_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell at little cost")
def test_memory_that_is_used_is_counted() -> None:
    before = resident_bytes()
    block = bytearray(b"x" * 64 * 2**20)
    assert before + 32 * 2**20 < resident_bytes()
    del block
