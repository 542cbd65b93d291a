"""The directory of a command is an argument DIR or the option --data DIR.

A command with other arguments, such as the URLs of `kadcrawl add`, takes --data alone. On a command line a person gives
one of both forms. The argument wins over the environment variable of --data.

Tests: tests/cli/test_directory_arguments.py
"""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource
from cloup import argument, option

Function = TypeVar("Function", bound=Callable[..., Any])


class _Data(click.Path):
    """The type of --data beside an argument DIR. If DIR is given, a variable in the environment may name anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        sources = () if ctx is None else map(ctx.get_parameter_source, ("directory", "directories"))
        return Path(value) if ParameterSource.COMMANDLINE in sources else super().convert(value, param, ctx)


_DIRECTORY = click.Path(path_type=Path, file_okay=False)
"""The type of DIR. A command says what is wrong with a directory that is not there."""
DATA_DIRECTORY = _Data(path_type=Path, file_okay=False)
"""The type of --data, also in a command without DIR."""
ALSO = "The same as the argument DIR."
"""The sentence on the option --data of a command that also takes the directory as an argument."""


def directory_argument(command: Function) -> Function:
    """Add an argument DIR that has the meaning of the option --data, which the command has as well."""

    @wraps(command)
    def with_data(*args: Any, directory: Path | None, **options: Any) -> Any:
        if directory is not None:
            context = click.get_current_context()
            _refuse_both(context)
            context.set_parameter_source("data", ParameterSource.COMMANDLINE)  # Commands ask whether --data was given.
            options["data"] = directory
        return command(*args, **options)

    add = argument("directory", required=False, type=_DIRECTORY, metavar="[DIR]")
    return add(cast(Function, with_data))


def directories_argument(command: Function) -> Function:
    """Add arguments DIR, at least one, and an option --data for one of them. The command takes `directories`."""

    @wraps(command)
    def with_directories(*args: Any, directories: tuple[Path, ...], data: Path | None, **options: Any) -> Any:
        context, given = click.get_current_context(), _parameter("directories")
        if directories:
            _refuse_both(context)
        elif data is not None:
            directories, given = (data,), _parameter("data")
        for name in directories:
            if not name.is_dir():
                raise click.BadParameter(f"there is no directory {str(name)!r}", context, given)
        if not directories:
            raise click.MissingParameter(ctx=context, param=_parameter("directories"))
        return command(*args, directories=directories, **options)

    arguments = argument("directories", nargs=-1, type=_DIRECTORY, metavar="DIR...")
    return arguments(option("--data", type=DATA_DIRECTORY, help=ALSO)(cast(Function, with_directories)))


def _parameter(name: str) -> click.Parameter:
    """Return the parameter of the running command with this name."""
    return next(one for one in click.get_current_context().command.params if one.name == name)


def _refuse_both(context: click.Context) -> None:
    """Raise an error if the command line has --data. With an argument, only one of both can be meant."""
    if context.get_parameter_source("data") is ParameterSource.COMMANDLINE:
        raise click.UsageError("a directory is given as DIR or by --data, and not by both", context)
