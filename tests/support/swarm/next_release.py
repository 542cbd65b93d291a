"""The command kadcrawl as the next release may be: one version of the wire more, and a further field in each message.

`python -m tests.support.swarm.next_release` runs like `kadcrawl start` and `kadcrawl join`.
"""

import sys
from typing import Any

from kadcrawl.cli import main
from kadcrawl.link.wire import basics, codec, messages
from kadcrawl.peer import Peer

LONGEST_SHORT_ARRAY = 0x9E
"""The first byte of an array that has room for one more element."""
FIELD = b"\xa9yesterday"

assert Peer is not None, "all modules that send anything are loaded"
packed = codec.pack


def pack(message: basics.Message) -> bytes:
    """Return the message with a field more at its end."""
    data = packed(message)
    return bytes([data[0] + 1]) + data[1:] + FIELD if data[0] <= LONGEST_SHORT_ARRAY else data


def upgrade() -> None:
    """Let this process speak the next version."""
    later: dict[str, Any] = {"WIRE_VERSION": basics.WIRE_VERSION + 1, "pack": pack}
    for module in [codec, basics, messages, *sys.modules.values()]:
        if getattr(module, "__name__", "").startswith("kadcrawl."):
            for name, value in later.items():
                if name in vars(module):
                    setattr(module, name, value)


if __name__ == "__main__":
    upgrade()
    main()
