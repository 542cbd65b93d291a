"""Types of options: a number, a length of time, a size, a limit, and a setting that the word `none` unsets.

Tests: tests/cli/test_job_options.py, tests/cli/test_parts.py
"""

from typing import Any

import click

from kadcrawl.errors import ConfigError
from kadcrawl.settings.durations import shown
from kadcrawl.settings.job import COUNT_MAX
from kadcrawl.settings.limit_file import SETTABLE, limit
from kadcrawl.settings.units import bytes_of, seconds_of
from kadcrawl.settings.unset import NONE, is_none

EXAMPLE = 100
"""A number for a message, unless it is too large for its option."""


class Duration(click.ParamType[float]):
    """A length of time, converted to seconds."""

    name = "TIME"

    def __init__(self, least_s: float | None = None, most_s: float | None = None) -> None:
        self._least_s, self._most_s = least_s, most_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            seconds = seconds_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._least_s is not None and self._most_s is not None and not self._least_s <= seconds <= self._most_s:
            self.fail(f"{value} is not from {shown(self._least_s)} to {shown(self._most_s)}", param, ctx)
        return seconds


class Size(click.ParamType[int]):
    """A size, converted to bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            size = bytes_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not 1 <= size <= COUNT_MAX:
            self.fail(f"{value} is not from 1 byte to {COUNT_MAX} bytes", param, ctx)
        return size


class Limit(click.ParamType[tuple[str, float | None]]):
    """NAME=VALUE, a limit with its unit. The value `none` is None."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float | None]:
        if isinstance(value, tuple):
            return value
        name, equals, said = str(value).partition("=")
        if not equals:
            said = f"{value!r:.60} is not NAME=VALUE, such as body_bytes_max=10MB"
            self.fail(f"{said}. The names are {', '.join(SETTABLE)}", param, ctx)
        try:
            return limit(name, said)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


class WholeNumber(click.IntRange):
    """A whole number of a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(int(value), param, ctx)
        except ValueError:
            self.fail(f"{value!r:.60} is not a whole number, such as {_example(self)}", param, ctx)


class Number(click.FloatRange):
    """A number of a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(float(value), param, ctx)
        except ValueError:
            self.fail(f"{value!r:.60} is not a number, such as {_example(self)}", param, ctx)


def _example(kind: WholeNumber | Number) -> str:
    """Return a number that such an option takes."""
    return f"{kind.max:g}" if kind.max is not None and kind.max < EXAMPLE else str(EXAMPLE)


class Line(click.types.StringParamType):
    """A text that may have spaces: of an option that can be repeated, the environment has one on each line."""

    envvar_list_splitter = "\n"


class Text(click.types.StringParamType):
    """A text that is not empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = super().convert(value, param, ctx)
        return text if text.strip() else self.fail("the text is empty; none means the default", param, ctx)


class OrNone(click.ParamType[Any]):
    """A value of another type, or `none`, which unsets the setting."""

    def __init__(self, kind: click.ParamType[Any]) -> None:
        self._kind = kind
        self.name = kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return NONE if is_none(value) else self._kind.convert(value, param, ctx)
