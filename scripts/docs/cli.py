"""The page of commands: usage, help, options and exit codes of each, from the click commands themselves.

Tests: tests/docs/test_cli.py
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import cloup

from kadcrawl.cli.app import main
from scripts.docs.exit_codes import codes, codes_by_command, meanings
from scripts.docs.markdown import anchor, code, page, prose, table

PAGE = "docs/reference/cli.md"
_SUFFIX = re.compile(r"\s*\[(?P<kind>env|default): (?P<text>[^]]*)\]")
_CODES = re.compile(r"^\s*(?:Exit codes:)?\s*(?P<code>\d+)  (?P<meaning>.+)$")
_VARIABLES = re.compile(r"KADCRAWL_[A-Z_]+")


def generate(root: Path) -> dict[str, str]:
    """Return the page of commands."""
    context = click.Context(main, info_name="kadcrawl")
    return {
        PAGE: page(
            "Commands",
            "the commands in `kadcrawl/cli`",
            "Every command of `kadcrawl`, with its options, their defaults, and its exit codes. `kadcrawl COMMAND "
            "--help` prints the same texts. Each option can also be [an environment variable]"
            "(environment.md#of-options).",
            _overview(context),
            _notations(),
            "## kadcrawl",
            _help(main.help or ""),
            _options(main.params),
            "Every command also has `-h` and `--help`, which print its help and exit.",
            *(
                part
                for section in main.list_sections(context)
                for name in section.commands
                for part in _command(root, name, main.commands[name])
            ),
        )
    }


def _overview(context: click.Context) -> str:
    rows = []
    for section in main.list_sections(context):
        for number, (name, command) in enumerate(section.commands.items()):
            title = section.title if number == 0 else ""
            short = inspect.cleandoc(command.help or "").partition("\n\n")[0]
            rows.append([title, f"[{code(name)}](#{anchor(f'kadcrawl {name}')})", prose(short)])
    return table(["", "command", "purpose"], rows)


def _notations() -> str:
    return "\n".join(
        [
            "The tables use these names for values:",
            "",
            "- `HOST:PORT` is a name or an IP address, and a port. An IPv6 address stands in brackets: `[::1]:4160`. "
            "The host alone means port 4160, and `:PORT` alone means this machine.",
            "- `TIME` is a number of seconds, or a number with one of the units `ms`, `s`, `min`, `h`, `d` and `w`: "
            "`90s`, `15 min`, `12h`, `7 days`, `2w`.",
            "- `NAME=VALUE` sets a [limit](limits.md#limits-of-a-peer), with its unit: `body_bytes_max=10MB`.",
            "- `SINK` is a destination of results: see [results and sinks](../how-to/results-and-sinks.md).",
            "- `DIR` as an argument is the directory of `--data`: give one of both. A command with other arguments, "
            "such as the URLs of `kadcrawl add`, takes `--data` alone.",
            "- An option marked *repeatable* may be given several times.",
        ]
    )


def _command(root: Path, name: str, command: click.Command) -> Iterator[str]:
    yield f"## kadcrawl {name}"
    yield f"    {_usage(name, command)}"
    yield _help(command.help or "")
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    if arguments:
        shown = ", ".join(code(argument.make_metavar(click.Context(command))) for argument in arguments)
        yield f"Arguments: {shown}."
    for title, options in option_groups(command):
        yield f"**{title}**"
        yield _options(options)
    yield "**Exit codes**"
    yield _exit_codes(root, name, command)


def _usage(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"kadcrawl {name}")
    return " ".join(command.get_usage(context).removeprefix("Usage: ").split())


def option_groups(command: click.Command) -> Iterator[tuple[str, Sequence[click.Parameter]]]:
    """Yield the titles and the options of a command's groups, in the order of its help."""
    assert isinstance(command, cloup.Command), "each command has groups of options"
    for group in command.option_groups:
        yield group.title, group.options
    grouped = {option for group in command.option_groups for option in group.options}
    if others := [option for option in command.params if isinstance(option, click.Option) and option not in grouped]:
        yield ("Other options" if command.option_groups else "Options"), others


def _options(parameters: Sequence[click.Parameter]) -> str:
    rows = [_row(option) for option in parameters if isinstance(option, click.Option) and not option.hidden]
    return table(["option", "value", "default", "meaning"], rows)


def _row(option: click.Option) -> list[str]:
    names = ", ".join(code(name) for name in option.opts)
    if option.secondary_opts:
        names += f", {', '.join(code(name) for name in option.secondary_opts)}"
    said = {found["kind"]: found["text"] for found in _SUFFIX.finditer(option.help or "")}
    meaning = prose(_SUFFIX.sub("", option.help or "").removesuffix(" Repeatable."))
    variables = _VARIABLES.findall(said.get("default", ""))
    if "env" in said:
        after = said.get("env", "").partition(", ")[2]
        meaning += f" Environment variable: {_variable(str(option.envvar))}{f', {prose(after)}' if after else ''}."
    default = prose(said["default"]) if "default" in said else _default(option)
    for variable in set(variables):
        default = default.replace(code(variable), _variable(variable))
    return [names, _value(option), default, meaning]


def _variable(name: str) -> str:
    return f"[{code(name)}](environment.md#{name.lower()})"


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    if option.is_flag:
        return f"{code(option.secondary_opts[0])}" if option.secondary_opts else ""
    if option.default is None or option.multiple or not _is_given(option.default):
        return ""
    return code(str(option.default))


def _is_given(value: object) -> bool:
    """Return whether a default is a value, not click's sign for none."""
    return isinstance(value, str | int | float | Path)


def _value(option: click.Option) -> str:
    if option.is_flag or option.count:
        return ""
    kind, unit = option.type, option.metavar
    if isinstance(kind, click.Choice):
        shown = ", ".join(code(str(choice)) for choice in kind.choices)
    elif isinstance(kind, click.IntRange | click.FloatRange):
        number = "seconds" if unit == "S" else "whole number" if isinstance(kind, click.IntRange) else "number"
        most = f" to {kind.max:,}" if kind.max is not None else ""
        least = f" from {kind.min:,}" if most else f", {kind.min:,} or more"
        shown = f"{number}{least}{most}"
    elif unit:
        shown = code(unit)
    elif isinstance(kind, click.Path):
        shown = "path"
    else:
        shown = "whole number" if kind is click.INT else "text" if kind is click.STRING else code(kind.name)
    return f"{shown} (repeatable)" if option.multiple else shown


def _help(text: str) -> str:
    """Return a help text, its verbatim blocks indented, and without its exit codes."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        verbatim = paragraph.removeprefix("\b\n")
        if verbatim == paragraph:
            parts.append(prose(paragraph))
            continue
        lines = verbatim.splitlines()
        if lines[0].startswith("Exit codes:"):
            continue
        if not lines[0].startswith(" ") and lines[0].endswith(":"):
            parts.append(prose(lines.pop(0)))
        parts.append("\n".join(f"    {line}" for line in inspect.cleandoc("\n".join(["", *lines])).splitlines()))
    return "\n\n".join(parts)


def exit_texts(command: click.Command) -> dict[int, str]:
    """Return the exit codes that the help of a command explains, with their texts."""
    _, begins, rest = inspect.cleandoc(command.help or "").partition("Exit codes:")
    lines = f"{begins}{rest}".partition("\n\n")[0].splitlines()
    return {int(found["code"]): found["meaning"] for line in lines if (found := _CODES.match(line))}


def _exit_codes(root: Path, name: str, command: click.Command) -> str:
    numbers, general, own = codes(), meanings(root), exit_texts(command)
    rows = []
    for constant in codes_by_command(root)[name]:
        number = numbers[constant]
        text = own.get(number) or general[constant].partition("\n\n")[0]
        text = prose(text[:1].upper() + text[1:])
        rows.append([f"[{code(str(number))}](exit-codes.md#exit-{number})", text + ("" if text.endswith(".") else ".")])
    return table(["code", "meaning"], rows)
