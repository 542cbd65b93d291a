"""Every option has an environment variable: --max-pages has KADCRAWL_MAX_PAGES.

An option on the command line wins over its variable, and the variable over a job file. An empty variable counts as
none. A flag takes 1 or 0, and an option that can be repeated takes its values with spaces between.
"""

import click

PREFIX = "KADCRAWL_"


def variable_of(option: click.Option) -> str:
    """Return the name of the environment variable of an option."""
    if isinstance(option.envvar, str):
        return option.envvar
    return PREFIX + option.opts[0].lstrip("-").replace("-", "_").upper()


def name_variables(group: click.Group) -> None:
    """Give each option of the commands of a group its environment variable."""
    for command in group.commands.values():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                parameter.envvar = variable_of(parameter)
