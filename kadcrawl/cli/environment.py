"""Every option has an environment variable: --max-pages has KADCRAWL_MAX_PAGES.

An option on the command line wins over its variable, and the variable over a job file. An empty variable counts as
none. A flag takes 1 or 0, and an option that can be repeated takes its values with spaces between.

A mistyped variable would be ignored without a word, so a command says so. It is silent about variables that resemble no
name: Kubernetes gives a pod variables such as KADCRAWL_SERVICE_HOST for a service `kadcrawl`.

Tests: tests/cli/test_environment.py
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

import click

PREFIX = "KADCRAWL_"
OTHERS = frozenset({"CACHE", "KEY", "MONGODB", "PROFILE", "PURE"})
"""The variables of no option, without the prefix. Tests and benchmarks read some of them."""
OTHER_STARTS = ("REQUIRE_", "SECRET_", "TESTS_")
"""Starts of further variables of no option, without the prefix."""
RESEMBLANCE_MIN = 0.7
"""The least resemblance of a mistyped name to the name that was meant, where 1 is equality."""


def variable_of(option: click.Option) -> str:
    """Return the name of the environment variable of an option."""
    if isinstance(option.envvar, str):
        return option.envvar
    return PREFIX + _upper(option.opts[0])


def name_variables(group: click.Group) -> None:
    """Give each option of the commands of a group its environment variable."""
    for command in group.commands.values():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                parameter.envvar = variable_of(parameter)


def unread(variables: Mapping[str, str], group: click.Group) -> list[str]:
    """Return the variables with our prefix and a value that neither an option of this group nor other code reads."""
    known = set(_names(group).values())
    return sorted(
        name
        for name, value in variables.items()
        if name.startswith(PREFIX) and value and name not in known and not _is_other(name.removeprefix(PREFIX))
    )


def mistyped(variables: Mapping[str, str], group: click.Group) -> Iterator[str]:
    """Yield a sentence for each of the unread variables that resembles one of this group, which has all commands."""
    names = _names(group)
    for name in unread(variables, group):
        if near := get_close_matches(name.removeprefix(PREFIX), names, n=1, cutoff=RESEMBLANCE_MIN):
            yield f"the variable {name} has no effect: {names[near[0]]} may be meant"


def _names(group: click.Group) -> dict[str, str]:
    """Return the variables of the options by their names without the prefix, and by the names of the options."""
    options = [
        option for command in group.commands.values() for option in command.params if isinstance(option, click.Option)
    ]
    names = {_upper(flag): variable_of(option) for option in options for flag in (*option.opts, *option.secondary_opts)}
    return names | {variable_of(option).removeprefix(PREFIX): variable_of(option) for option in options}


def _is_other(name: str) -> bool:
    return name in OTHERS or name.startswith(OTHER_STARTS)


def _upper(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_").upper()
