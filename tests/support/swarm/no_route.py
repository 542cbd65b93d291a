"""The command kadcrawl on a machine without a route to the sites, for tests of a bad network.

`python -m tests.support.swarm.no_route` runs like `kadcrawl`, whose peer makes no connection to any site. Peers reach
each other as ever.
"""

import errno
from typing import Any, NoReturn

from kadcrawl.cli import main
from kadcrawl.crawl.fetch.address_guard import Guard


def no_route(guard: Guard, addr_info: Any) -> NoReturn:
    """Make no socket for the address of a site."""
    raise OSError(errno.ENETUNREACH, "network is unreachable")


if __name__ == "__main__":
    Guard.socket = no_route  # type: ignore[method-assign, assignment]
    main()
