"""`kadcrawl set`: a person changes a setting of the job while the crawl runs, or before it goes on.

Tests: tests/cli/commands/test_set.py
"""

from pathlib import Path

import click
import cloup

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.keys import peer_options
from kadcrawl.cli.user import user_name
from kadcrawl.settings.job_changes import shown_value, value_of


@cloup.command(
    "set",
    short_help="Change a setting of a crawl, running or at rest.",
    context_settings={"ignore_unknown_options": True},  # So -5 is a value, and the option of the job a name.
)
@cloup.argument("name", metavar="NAME")
@cloup.argument("value", metavar="VALUE|default")
@peer_options("Any peer of the swarm.")
@told
def set_(name: str, value: str, peer: tuple[str, int], data: Path, key_file: Path | None) -> int:
    """Change a setting of the job in a swarm.

    \b
    kadcrawl set delay 5s            at least so long between two requests to a site
    kadcrawl set retries 5           so many retries after a temporary failure
    kadcrawl set refusals 8          fail the URLs of a site from so many refusals in a row
    kadcrawl set max-site-pages 900  so many URLs of each site
    kadcrawl set max-pages 20000     end after so many pages; also max-bytes and max-time
    kadcrawl set delay default       go back to the value with which the crawl began

    Any peer takes the order and tells all others, as with `kadcrawl site`. The limits max-pages, max-bytes and max-time
    can change if the crawl began with them. A setting that cannot change is refused with the reason. The value stands
    until another takes its place, also after a restart with other options. If no peer runs in --data, the order is
    journaled there, and holds when the crawl goes on.
    """
    from kadcrawl.cli.giving import give
    from kadcrawl.link.wire.order_messages import StandingOrder

    name = name.removeprefix("--")
    wanted = value_of(name, value)
    given = give(peer, data, key_file, [StandingOrder("set", name, wanted, user=user_name())])
    is_now = "is as the crawl began again" if wanted is None else f"is {shown_value(name, wanted)}"
    click.echo(f"{name} {is_now}")
    given.say_how_far()
    return DONE
