"""The page of environment variables, and the search for variables that the code reads.

Tests: tests/docs/test_environment.py
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from kadcrawl.cli.app import main
from kadcrawl.cli.environment import variable_of
from scripts.docs.markdown import code, page, prose, table

PAGE = "docs/reference/environment.md"
TREES = ("kadcrawl", "sim", "scripts", "fuzz", "tests")
_OWN = re.compile(r"\bKADCRAWL_[A-Z]+(?:_[A-Z]+)*\b")
_MARKS = ("environ", "getenv", "envvar", "KADCRAWL_")
"""Words without which no file reads or names a variable."""
_READERS = {"get", "pop", "getenv"}


class Variable(NamedTuple):
    """A variable, its form, and its effect."""

    name: str
    value: str
    meaning: str


OF_COMMAND = (
    Variable(
        "KADCRAWL_KEY",
        "64 hexadecimal digits",
        "The swarm's key, for all commands with --key-file, which wins over it. The command takes the variable out of "
        "its environment, so processes that it starts do not get it from there.",
    ),
    Variable(
        "KADCRAWL_CONTACT",
        "a URL or an e-mail address",
        "The same as --contact, which wins over it. It wins over a job file.",
    ),
    Variable(
        "KADCRAWL_SINK",
        "sinks with spaces between",
        "The same as --sink, or as --to of kadcrawl export, which win over it. It is the place for a sink with a "
        "password or a key in it, because other people on the machine see the arguments of a command.",
    ),
    Variable("KADCRAWL_SECRETS", "a file", "The same as --secrets, which wins over it."),
    Variable(
        "KADCRAWL_SECRET_WIKI_LOGIN",
        "a password or token",
        "The secret wiki-login of this machine, which wins over the file of --secrets. Each secret has such a "
        "variable, with its own name in upper case, and _ for -.",
    ),
    Variable(
        "KADCRAWL_LOG",
        "debug, info, warning or error",
        "The same as --log-level, which wins over it: the lowest level of lines in peer.log.",
    ),
    Variable(
        "KADCRAWL_PURE",
        "1",
        "Links are found by Python code only, even if the native module was compiled. Set at installation, no native "
        "module is compiled. `kadcrawl doctor` names what is in use.",
    ),
    Variable(
        "KADCRAWL_PROFILE",
        "a file",
        "Each process of a crawl writes a profile of its CPU time to FILE.PID, for the module pstats of Python.",
    ),
)
OF_LIBRARIES = (
    Variable("_KADCRAWL_COMPLETE", "", "The script of the shell's completion sets it (click)."),
    Variable(
        "SPT_NOENV",
        "1",
        "A process that the command starts sets it for itself: its name then leaves its environment in place "
        "(setproctitle).",
    ),
    Variable("NO_COLOR", "any text", "The live table has no colors (rich)."),
    Variable("COLUMNS", "a number", "The width of the live table (rich)."),
    Variable("HOME", "a directory", "Replaces ~ in the file of a sink."),
    Variable(
        "XDG_STATE_HOME",
        "a directory",
        "The place of the user's state on Linux: kadcrawl/peers in it has a file for each running peer (platformdirs).",
    ),
    Variable(
        "AWS_*",
        "",
        "The keys, region and endpoint of an S3 sink, where s3fs and boto look for them. Other places of fsspec have "
        "variables of their own.",
    ),
)
OF_DEVELOPMENT = (
    Variable(
        "KADCRAWL_CACHE",
        "a directory",
        "Benchmarks and tests keep the documentation sites that they crawl in its folder sites. Without it, in "
        ".cache of the repository.",
    ),
    Variable(
        "KADCRAWL_REQUIRE_SITES",
        "1",
        "Tests that need these sites fail without them. Otherwise they are skipped.",
    ),
    Variable(
        "KADCRAWL_REQUIRE_SHELLS",
        "1",
        "The tests of the shells' completion fail without these shells. Otherwise they are skipped.",
    ),
    Variable(
        "KADCRAWL_REQUIRE_PROMTOOL",
        "1",
        "The tests of the metrics' form fail without promtool, of Debian's package prometheus. Otherwise they are "
        "skipped.",
    ),
    Variable(
        "KADCRAWL_REQUIRE_BROWSER",
        "1",
        "The tests of the dashboard's pages fail without Chromium, Node.js and npm. Otherwise they are skipped.",
    ),
    Variable(
        "KADCRAWL_TESTS_EXEC",
        "1",
        "Each command of a test is a new process of Python. Otherwise most commands are forks of a process that has "
        "imported kadcrawl, which takes a fraction of the CPU.",
    ),
    Variable(
        "KADCRAWL_MONGODB",
        "a MongoDB connection string",
        "The tests of the MongoDB sink use this server. Without it they start BriskDB.",
    ),
)


def generate(root: Path) -> dict[str, str]:
    """Return the page of environment variables."""
    return {
        PAGE: page(
            "Environment variables",
            "`scripts/docs/environment.py`",
            "Each option of `kadcrawl` has a variable, and a few more variables have no option. Proxies are not "
            "read from the environment: `http_proxy` and its kin have no effect. A hook does not see variables that "
            "begin with `KADCRAWL_`.",
            "## Of the command",
            _table(OF_COMMAND),
            "## Of options",
            "The value of a setting comes from the first of these that has it: the command line, the environment, the "
            "[job file](job-file.md), the earlier run of the directory, the default. A variable has the form of its "
            "option. An empty variable counts as none.",
            "- A flag takes `1` or `0`: `KADCRAWL_SITEMAPS=1` is `--sitemaps`, and `KADCRAWL_SITEMAPS=0` is "
            "`--no-sitemaps`.\n"
            "- An option that can be repeated takes values with spaces between. `KADCRAWL_HEADERS` has one a line.\n"
            "- A variable whose option a command does not have means nothing to that command. A variable that no "
            "command has, but that resembles one, is named at the start: `KADCRAWL_MAXPAGES` has no effect.",
            table(["variable", "option", "commands"], _option_rows()),
            "## Of libraries",
            "Libraries that the command uses read these variables.",
            _table(OF_LIBRARIES),
            "[Complete commands in a shell](../how-to/shell-completion.md) and [results and sinks]"
            "(../how-to/results-and-sinks.md) explain their use.",
            "## Of tests and benchmarks",
            "Only the repository's own tests and scripts read these variables.",
            _table(OF_DEVELOPMENT),
        )
    }


def _option_rows() -> list[list[str]]:
    """Return a row for each variable of an option, with the commands that read it."""
    commands: dict[tuple[str, str], list[str]] = {}
    for name, command in main.commands.items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                commands.setdefault((variable_of(option), option.opts[0]), []).append(name)
    special = {each.name for each in OF_COMMAND}
    return [
        [code(variable) if variable in special else _anchored(variable), code(flag), ", ".join(names)]
        for (variable, flag), names in sorted(commands.items())
    ]


def _anchored(variable: str) -> str:
    return f'<a id="{variable.lower().strip("_*")}"></a>{code(variable)}'


def _table(variables: tuple[Variable, ...]) -> str:
    rows = [[_anchored(each.name), prose(each.value), prose(each.meaning)] for each in variables]
    return table(["variable", "value", "effect"], rows)


def variables_read(root: Path) -> dict[str, set[str]]:
    """Return the variables that the code reads or names, each with the trees that do."""
    found: dict[str, set[str]] = {}
    for tree in TREES:
        for path in sorted((root / tree).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if any(word in text for word in _MARKS):  # Parsing takes most of the time.
                for name in _named(ast.parse(text)):
                    found.setdefault(name, set()).add(tree)
    for path in (root / "Makefile", root / ".ci/run"):
        for name in _OWN.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.name)
    return found


def _named(tree: ast.Module) -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        name: ast.expr | None = None
        if isinstance(node, ast.Subscript) and _is_environ(node.value):
            name = node.slice
        elif isinstance(node, ast.Call):
            is_reader = isinstance(node.func, ast.Attribute) and node.func.attr in _READERS
            if is_reader and (_is_environ(node.func.value) or node.func.attr == "getenv") and node.args:  # type: ignore[attr-defined]
                name = node.args[0]
            else:
                name = next((word.value for word in node.keywords if word.arg == "envvar"), None)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _OWN.fullmatch(node.value):
            yield node.value
        if isinstance(name, ast.Name):
            yield str(constants.get(name.id, f"the value of {name.id}"))
        elif isinstance(name, ast.Constant):
            yield str(name.value)


def _is_environ(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in ("os.environ", "environ")
