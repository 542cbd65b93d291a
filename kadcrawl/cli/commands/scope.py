"""`kadcrawl scope`: a person changes the scope of a crawl.

Tests: tests/cli/commands/test_scope.py
"""

from pathlib import Path

import click
import cloup

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.keys import peer_options
from kadcrawl.cli.targets import refuse_directories
from kadcrawl.cli.user import user_name


@cloup.command(short_help="Change the scope of a crawl: add, remove.")
@cloup.argument("action", type=click.Choice(["add", "remove"]), metavar="add|remove")
@cloup.argument("subjects", nargs=-1, required=True, metavar="HOST|/PATTERN/...")
@peer_options("Any peer of the swarm.")
@told
def scope(action: str, subjects: tuple[str, ...], peer: tuple[str, int], data: Path, key_file: Path | None) -> int:
    """Change the scope of a crawl: add or remove hosts or patterns.

    The change holds for links that are found from then on.

    A HOST is as in `kadcrawl site`, such as *.example.org. A PATTERN between slashes is searched for in the URL, as
    --exclude is. Of all orders that match a URL, the latest counts. URLs that an order adds need match no --include,
    but --exclude and the limits still hold. Pending URLs that an order takes out fail as scope_removed. If no peer runs
    in --data, the order is journaled there, and holds when the crawl goes on.
    """
    from kadcrawl.cli.giving import give
    from kadcrawl.link.wire.order_messages import StandingOrder
    from kadcrawl.settings.scope_orders import OR_PATTERN, is_pattern
    from kadcrawl.settings.site_rules import match_named

    refuse_directories(subjects, "host")
    value, user = float(action == "add"), user_name()
    named = [text if is_pattern(text) else match_named(text, OR_PATTERN) for text in subjects]
    orders = [StandingOrder("scope", subject, value, user=user) for subject in dict.fromkeys(named)]
    given = give(peer, data, key_file, orders)
    for order in orders:
        click.echo(f"{order.about} is {'in scope' if value else 'out of scope'}")
    given.say_how_far()
    return DONE
