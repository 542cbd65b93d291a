"""A module with a hook that no peer of a local crawl can import while the peer lives, so that it does not get ready."""

import os
import time
from pathlib import Path

while b"kadcrawl: peer" in Path(f"/proc/{os.getppid()}/cmdline").read_bytes():
    time.sleep(0.05)


def nothing(page: object) -> None:
    """Take no record."""
