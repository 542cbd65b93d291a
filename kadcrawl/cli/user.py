"""The name of the person who gives a command, for the log of the swarm. It proves nothing.

Tests: tests/cli/commands/test_site.py
"""

import getpass

from kadcrawl.link.wire.order_messages import USER_CHARS_MAX


def user_name() -> str:
    """Return the name of the user of this process, or an empty text if the machine has none."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # A container may run a user without a name.
        return ""
    return "".join(sign for sign in name if " " <= sign <= "~")[:USER_CHARS_MAX]
