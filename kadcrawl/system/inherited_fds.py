"""File descriptors that the parent process left open by mistake.

Tests: tests/cli/test_command_local.py, tests/cli/test_command_records.py
"""

import os
import sys

STREAMS = 3


def close_inherited(but: int | None = None) -> None:
    """Close all but the three streams, and `but`. Call it before the process opens any file of its own.

    uvloop leaves the ends of pipes open in the processes it starts, under other numbers as well. Their children could
    write in their name, and keep their parent from noticing that they died.
    """
    # By name: the limit of numbers may be a thousand million, and not every Python can close a range at once.
    for name in os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"):
        if (descriptor := int(name)) >= STREAMS and descriptor != but:
            os.closerange(descriptor, descriptor + 1)  # Unlike os.close it accepts a closed number.
