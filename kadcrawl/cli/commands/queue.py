"""`kadcrawl queue`: a person looks at the pending URLs of a running swarm, or of one site.

Tests: tests/cli/commands/test_queue.py
"""

from pathlib import Path

import click
import cloup

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.keys import key_to_ask, peer_options
from kadcrawl.cli.site_names import complete_sites
from kadcrawl.cli.targets import refuse_directories, targets
from kadcrawl.cli.types import WholeNumber
from kadcrawl.link.wire.queue_messages import QUEUED_SITES_MAX, QUEUED_URLS_MAX


@cloup.command(short_help="Show what is pending: by site, depth and age.")
@cloup.argument("site", required=False, default="", metavar="[SITE]", shell_complete=complete_sites)
@cloup.option(
    "--top",
    "count",
    type=WholeNumber(1, QUEUED_URLS_MAX),
    default=10,
    show_default=True,
    help="Sites shown, or with a SITE its next URLs.",
)
@cloup.option("--json", "as_json", is_flag=True, help="Print JSON.")
@peer_options("Any peer of the swarm.")
@told
def queue(site: str, count: int, as_json: bool, peer: tuple[str, int], data: Path, key_file: Path | None) -> int:
    """Show what is pending in a running swarm: how many URLs, by depth and by age, and the sites with the most.

    With a SITE, such as example.org, the numbers are those of this site, as its owner counts them, and its next URLs
    are listed, breadth first. The age of a URL is the time since its present owner has it.

    All who ask share one count of each peer, which may be ten seconds old.
    """
    from kadcrawl.cli.view import queue as view
    from kadcrawl.link.wire.given_order import orders_in_force
    from kadcrawl.link.wire.queue_messages import GetQueue, Queue, SurveyQueue
    from kadcrawl.peer.queue_status import QueueStatus

    refuse_directories([site], "site")
    survey = SurveyQueue(site, 1, count) if site else SurveyQueue("", min(count, QUEUED_SITES_MAX))
    answer = targets(peer, data, key_to_ask(key_file, data)).ask(GetQueue(survey), Queue)
    orders = orders_in_force(answer.orders)
    found = QueueStatus.of(answer)
    if as_json:
        click.echo(view.as_json(found, orders))
        return DONE
    for line in (
        *view.queue_lines(found),
        *(view.site_lines(found, orders) if found.top else view.missing_lines(found)),
    ):
        click.echo(line)
    return DONE
