"""`kadcrawl site`: a person pauses single sites of a running swarm, lets them go on, or slows them down.

Tests: tests/cli/commands/test_site.py
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
import cloup

from kadcrawl.cli.exits import DONE, told
from kadcrawl.cli.keys import key_to_ask, peer_options
from kadcrawl.cli.options import is_given
from kadcrawl.cli.site_names import complete_sites
from kadcrawl.cli.targets import Asked, directories, goes_on, refuse_directories, rests, targets
from kadcrawl.cli.user import user_name
from kadcrawl.errors import ConfigError
from kadcrawl.settings.units import seconds_of
from kadcrawl.system.plural import counted

OFF = ("off", "none")
"""The words that lift a delay."""
STANDS = "it stands until another takes its place, also for peers that join or come back later"

Value = tuple[str, float | None]
"""The kind of an order, and its value."""


def _pause(_: str) -> Value:
    return "pause", 1.0


def _resume(_: str) -> Value:
    return "pause", None


def _exclude(_: str) -> Value:
    return "exclude", 1.0


def _include(_: str) -> Value:
    return "exclude", None


def _drop(_: str) -> Value:
    return "drop", 1.0


def _slow(said: str) -> Value:
    try:
        return "delay", None if said.lower() in OFF else seconds_of(said)
    except ValueError as error:
        raise ConfigError(f"{error}. `kadcrawl site slow SITE 30s` says how long a site is left alone") from None


ACTIONS: Mapping[str, Callable[[str], Value]] = {
    "pause": _pause,
    "resume": _resume,
    "slow": _slow,
    "exclude": _exclude,
    "include": _include,
    "drop": _drop,
}


@cloup.command(
    short_help="Steer single sites: ls, pause, resume, slow, exclude, include, drop.",
    context_settings={"ignore_unknown_options": True},  # So -5 is a time.
)
@cloup.argument("action", type=click.Choice(["ls", *ACTIONS]), metavar="ACTION")
@cloup.argument("sites", nargs=-1, metavar="[SITE]...", shell_complete=complete_sites)
@cloup.option("--json", "as_json", is_flag=True, help="With ls: print JSON.")
@peer_options("Any peer of the swarm.")
@told
def site(
    action: str, sites: tuple[str, ...], as_json: bool, peer: tuple[str, int], data: Path, key_file: Path | None
) -> int:
    """Steer single sites of a swarm.

    \b
    kadcrawl site pause SITE...      start no request to these sites; their URLs stay pending
    kadcrawl site resume SITE...     let these sites go on
    kadcrawl site slow SITE... TIME  leave these sites alone for at least TIME after each request, `off` lifts that
    kadcrawl site exclude SITE...    leave these sites out: pending URLs fail as site_excluded, links are not followed
    kadcrawl site include SITE...    follow links to these sites again
    kadcrawl site drop SITE...       end the URLs that are pending now, as site_dropped; later links are followed
    kadcrawl site ls [SITE]...       list the orders that stand, and the sites with the most pending URLs

    A SITE is a host such as example.org, a host with a port, or *.example.org for the host and all hosts below it. The
    URL of a front page names its host. The order with the narrowest name decides. Any peer takes the order and tells
    all others. An order is part of the swarm's state: it reaches peers that join later or were cut off, and survives a
    crash of all peers. A crawl with a paused site is not over before the site goes on. If no peer runs in --data, the
    order is journaled there, and holds when the crawl goes on.
    """
    from kadcrawl.cli.giving import give
    from kadcrawl.link.wire.order_messages import StandingOrder
    from kadcrawl.settings.site_rules import match_named

    if unknown := next((text for text in sites if text.startswith("-") and not text[1:2].isdigit()), None):
        raise click.NoSuchOption(unknown, ctx=click.get_current_context())
    refuse_directories(sites, "site")
    if action == "ls":
        resting = [] if is_given("peer") else directories(data)
        if rests(resting):
            show_orders(data, sites, as_json=as_json)
        else:
            show_sites(targets(peer, data, key_to_ask(key_file, data)), sites, as_json=as_json)
        return DONE
    typed, said = (sites[:-1], sites[-1:]) if action == "slow" else (sites, ("",))
    if not typed:
        example = "kadcrawl site slow example.org 30s" if action == "slow" else f"kadcrawl site {action} example.org"
        raise ConfigError(f"{action} needs the name of a site: {example}")
    kind, value = ACTIONS[action](said[0])
    names, user = map(match_named, typed), user_name()
    orders = [StandingOrder(kind, name, value, user=user) for name in dict.fromkeys(names)]  # type: ignore[arg-type]
    giving = give(peer, data, key_file, orders)
    if action == "drop" and giving.goes_on is not None:
        click.echo(f"the pending URLs of {', '.join(order.about for order in orders)} are dropped by {giving.goes_on}")
    elif action == "drop":
        click.echo(_dropped(giving.given.dropped))
        if giving.given.cells_left:
            parts = counted(giving.given.cells_left, "part of the crawl is", "parts of the crawl are")
            click.echo(f"{parts} still being looked through: more may follow")
    else:
        for order in orders:
            click.echo(_said(action, order.about, value))
    giving.say_how_far()
    return DONE


def show_sites(asked: Asked, sites: Sequence[str], *, as_json: bool) -> None:
    """Print the orders that stand, and the sites with the most pending URLs or the named sites."""
    from kadcrawl.cli.view import orders as view, queue
    from kadcrawl.link.wire.given_order import orders_in_force
    from kadcrawl.link.wire.queue_messages import GetQueue, Queue, SurveyQueue
    from kadcrawl.peer.queue_status import QueueStatus, together

    surveys = [SurveyQueue(name, 1) for name in dict.fromkeys(sites)] or [SurveyQueue()]
    answers = [asked.ask(GetQueue(survey), Queue) for survey in surveys]
    orders = orders_in_force(answers[-1].orders)
    found = together([QueueStatus.of(answer) for answer in answers])
    if as_json:
        click.echo(queue.as_json(found, orders))
        return
    for line in (*view.lines(orders), *queue.site_lines(found, orders)):
        click.echo(line)


def show_orders(data: Path, sites: Sequence[str], *, as_json: bool) -> None:
    """Print the orders that stand in a directory at rest. Raises ConfigError if sites are named."""
    import json
    from dataclasses import asdict

    from kadcrawl.cli.local.resting import resting_peers
    from kadcrawl.cli.view import orders as view
    from kadcrawl.link.wire.given_order import orders_in_force

    again = f"{goes_on(data)} goes on"
    if sites:
        raise ConfigError(f"the pending URLs of a site are counted by running peers, and none runs: {again}")
    orders = orders_in_force(order for peer in resting_peers(data) for order in peer.orders)
    if as_json:
        click.echo(json.dumps({"orders": [asdict(order) for order in orders]}, indent=2))
        return
    for line in view.lines(orders):
        click.echo(line)
    click.echo(f"kadcrawl: no peer runs in {data}, so no pending URLs are counted; {again}", err=True)


def _dropped(urls: int) -> str:
    if not urls:
        return "no URL is dropped: none was pending, but for those that are being fetched"
    back = "`kadcrawl retry --reason site_dropped` has them fetched after all"
    return f"{urls:,} pending URL{'s' if urls != 1 else ''} dropped; {back}"


def _said(action: str, name: str, value: float | None) -> str:
    if action == "pause":
        return f"{name} is paused; `kadcrawl site resume {name}` lets it go on"
    if action == "resume":
        return f"{name} goes on"
    if action in ("exclude", "include"):
        return f"{name} is {action}d"
    return f"{name} is left alone for {value:g} s after each request" if value else f"{name} has its own delay again"
