"""The exit codes: their meaning from `kadcrawl/cli/exits.py`, and the commands that return each.

The commands are found in the code. From the function of a command on, each function of `kadcrawl/cli` that it names is
read, and each constant of `exits.py` in them is a code of the command.

Tests: tests/docs/test_exit_codes.py
"""

import ast
import inspect
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import click

from kadcrawl.cli import exits
from kadcrawl.cli.app import main
from scripts.docs.docstrings import attribute_docstrings
from scripts.docs.markdown import anchor, code, page, paragraphs, table

PAGE = "docs/reference/exit-codes.md"
SHARED = ("DONE", "MISTAKE", "INTERRUPTED")
"""The codes of every command: `exits.told` returns them."""

Functions = Mapping[tuple[str, str], Collection[str]]
"""(Module, function) -> the names in the function."""


def codes() -> dict[str, int]:
    """Return the numbers of all exit codes, by constant, in order."""
    found = {name: value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    return dict(sorted(found.items(), key=lambda entry: entry[1]))


def meanings(root: Path) -> dict[str, str]:
    """Return the docstring of each exit code, by constant."""
    tree = ast.parse((root / "kadcrawl/cli/exits.py").read_text(encoding="utf-8"))
    documented = attribute_docstrings(tree.body)
    return {name: documented[name] for name in codes()}


@cache
def codes_by_command(root: Path) -> dict[str, list[str]]:
    """Return the constants of the codes that each command returns."""
    return {name: _returned(root, command) for name, command in main.commands.items()}


def _returned(root: Path, command: click.Command) -> list[str]:
    callback = inspect.unwrap(command.callback) if command.callback else None
    assert callback is not None, f"{command.name} is a command with a function"
    functions, imports = _cli(root)
    numbers = codes()
    reached: set[tuple[str, str]] = set()
    open_names = [(callback.__module__, callback.__name__)]
    found = set(SHARED)
    while open_names:
        place = open_names.pop()
        if place in reached or place not in functions:
            continue
        reached.add(place)
        for name in functions[place]:
            origin = imports.get((place[0], name), (place[0], name))
            if origin[0] == exits.__name__ and origin[1] in numbers:
                found.add(origin[1])
            open_names.append(origin)
    return [name for name in numbers if name in found]


@cache
def _cli(root: Path) -> tuple[Functions, Mapping[tuple[str, str], tuple[str, str]]]:
    """Return the functions of the command, and where each imported name of its modules is from."""
    functions: dict[tuple[str, str], Collection[str]] = {}
    imports = {}
    for path in (root / "kadcrawl/cli").rglob("*.py"):
        module = path.relative_to(root).with_suffix("").as_posix().replace("/", ".")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions[module, node.name] = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for name in node.names:
                    imports[module, name.asname or name.name] = node.module, name.name
    return functions, imports


def generate(root: Path) -> dict[str, str]:
    """Return the page of exit codes."""
    texts, by_command = meanings(root), codes_by_command(root)
    rows = []
    for name, number in codes().items():
        users = [command for command, names in by_command.items() if name in names]
        shown = "every command" if len(users) == len(by_command) else ", ".join(map(_command_link, users))
        meaning, _, advice = texts[name].partition("\n\n")
        rows.append([f'<a id="exit-{number}"></a>{code(str(number))}', paragraphs(meaning), shown, paragraphs(advice)])
    return {
        PAGE: page(
            "Exit codes",
            "`kadcrawl/cli/exits.py` and the commands",
            "A script can tell by the exit code of `kadcrawl` how a command ended. With every code except 0 the "
            "command prints what happened.",
            table(["code", "meaning", "commands", "what to do"], rows),
            "A process that the system ended by a signal has the code of its shell instead, such as 137 after `kill "
            "-9`. Ctrl-C in the first tenth of a second meets Python itself at its start, which ends with a traceback "
            "and code 1 or 130. Any other traceback with code 1 is a bug of kadcrawl. Please report it.",
        )
    }


def _command_link(command: str) -> str:
    return f"[{code(command)}](cli.md#{anchor(f'kadcrawl {command}')})"
