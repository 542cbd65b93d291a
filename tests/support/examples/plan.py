"""The plan of a page: the steps that its blocks ask for, and the blocks that break the rules for writers."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from tests.support.examples.console import HERE, NUMBERS, BadConsole, Command, commands
from tests.support.examples.page import Block
from tests.support.examples.repository_commands import Repository, is_of_the_repository, problem

SHOWN_ONLY: Final = frozenset({"text", "html", "xml", "http", "ini", "yaml"})
"""Languages in which nothing can be run."""
LANGUAGES: Final = SHOWN_ONLY | {"console", "sh", "python", "toml", "json"}
_HIDDEN: Final = re.compile(
    r"^\s*(?:\w*\$ \S|(?:\.venv/bin/)?(?:kadcrawl (?:[a-z]+ )?-|kadcrawl [a-z]+ \S*[/.:]|pip3? install |python3? -m "
    r"|make [a-z-]+(?:\s|$)))"
)
"""A line that a reader would type."""
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_NOT_EVERYWHERE: Final = re.compile(
    r"(?:^|[|;&(]|\bxargs )\s*(jq|sqlite3|duckdb|curl|wget|killall|pgrep|sudo|apt|apt-get|systemctl|docker)\b"
)
_BACKGROUND: Final = re.compile(r"^(?:\w+=\S+\s+)*(?:\.venv/bin/)?kadcrawl\s+(?:start|join)\b(?!.*--help)", re.DOTALL)
_ENDS_IN_BACKGROUND: Final = re.compile(r"(?<!&)&\s*$")


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that the page breaks, or an example that does not do as the page says."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """One action that a line of the page asks for."""

    line: int
    columns: int = 80
    pace: int = 50


@dataclass(frozen=True, slots=True)
class RunCommand(Step):
    """Run a command and compare its output."""

    command: Command = field(kw_only=True)
    output_line: int = field(kw_only=True)
    """The line of the page where the output begins."""
    background: bool = False


@dataclass(frozen=True, slots=True)
class RunScript(Step):
    """Run a script that has no output to compare."""

    text: str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class RunProgram(Step):
    """Run a Python program to its end, or its tests."""

    text: str = field(kw_only=True)
    has_tests: bool = False


@dataclass(frozen=True, slots=True)
class WriteFile(Step):
    """Write a file to a machine, for the steps that follow."""

    machine: str = field(kw_only=True)
    path: str = field(kw_only=True)
    text: str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class CheckJob(Step):
    """Let `kadcrawl check` accept the text as a job file."""

    text: str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a page in order."""

    steps: Sequence[Step]
    problems: Sequence[Problem]
    not_run: Sequence[tuple[int, str]]
    """(line, reason) of each block that cannot run."""


def plan(blocks: Sequence[Block], repository: Repository, is_generated: bool = False) -> Plan:
    """Return the plan of a page. In a generated page, blocks of text may quote commands: they are help texts."""
    steps: list[Step] = []
    problems: list[Problem] = []
    not_run: list[tuple[int, str]] = []
    for block in blocks:
        is_known = block.language in LANGUAGES or block.title or block.not_run is not None
        if not block.language or not is_known:
            known = ", ".join(sorted(LANGUAGES))
            which = f"the unknown language {block.language!r}" if block.language else "no language"
            problems.append(Problem(block.line, f"the block has {which}; the rules know {known}"))
        elif block.not_run is not None:
            not_run.append((block.line, block.not_run))
            if len(block.not_run.split()) < 2:
                problems.append(Problem(block.line, "say the reason: <!-- not run: REASON -->"))
        else:
            for found in _steps(block, repository, is_generated):
                if isinstance(found, Problem):
                    problems.append(found)
                else:
                    steps.append(found)
    return Plan(steps, problems, not_run)


def _steps(block: Block, repository: Repository, is_generated: bool) -> Iterator[Step | Problem]:
    at = block.line
    if block.title:
        yield from _file(block)
    elif block.language == "console":
        yield from _console(block, repository)
    elif block.language == "sh":
        yield from _script(block, repository)
    elif block.language == "python":
        yield RunProgram(
            at,
            block.columns,
            block.pace,
            text=block.text,
            has_tests=re.search(r"^def test_", block.text, re.M) is not None,
        )
    elif block.language == "toml":
        yield CheckJob(at, text=block.text)
    elif block.language == "json":
        if (why := _not_json(block.text)) is not None:
            yield Problem(at, why)
    elif not is_generated:
        for number, line in enumerate(block.text.splitlines(), at + 1):
            if _HIDDEN.match(line):
                yield Problem(number, f"a block of {block.language} holds a command; use console or sh: {line.strip()}")


def _file(block: Block) -> Iterator[Step | Problem]:
    machine, colon, path = block.title.rpartition(":")
    if colon and machine not in NUMBERS:
        yield Problem(block.line, f"no machine is called {machine}; titles are FILE or MACHINE:FILE")
        return
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        yield Problem(block.line, f"{path} would be written outside the page's directory")
        return
    yield WriteFile(block.line, machine=machine or HERE, path=path, text=block.text)
    if path.endswith(".json") and (why := _not_json(block.text)) is not None:
        yield Problem(block.line, why)
    if path.endswith(".toml") and PurePosixPath(path).name != "pyproject.toml":
        yield CheckJob(block.line, text=block.text)


def _console(block: Block, repository: Repository) -> Iterator[Step | Problem]:
    try:
        found = commands(block.text)
    except BadConsole as error:
        yield Problem(block.line + 1 + error.line, str(error))
        return
    if not found:
        yield Problem(block.line, "the console block holds no command")
    for command in found:
        at = block.line + 1 + command.line
        if is_of_the_repository(command.text):
            if (why := problem(command.text, repository)) is not None:
                yield Problem(at, f"{command.text}: {why}")
            elif command.output:
                yield Problem(at, f"{command.text}: this command is only checked, so show no output")
        elif (missing := _not_everywhere(command.text)) is not None:
            yield Problem(at, f"{missing} is not on every machine; use python, or say <!-- not run: REASON -->")
        else:
            background = bool(_BACKGROUND.match(command.text) or _ENDS_IN_BACKGROUND.search(command.text))
            output_line = block.line + 1 + command.output_line
            yield RunCommand(
                at, block.columns, block.pace, command=command, output_line=output_line, background=background
            )


def _script(block: Block, repository: Repository) -> Iterator[Step | Problem]:
    kept = []
    for number, line in _whole_lines(block):
        if is_of_the_repository(line):
            if (why := problem(line, repository)) is not None:
                yield Problem(number, f"{line.strip()}: {why}")
        elif (missing := _not_everywhere(line)) is not None:
            yield Problem(number, f"{missing} is not on every machine; use python, or say <!-- not run: REASON -->")
        elif _BACKGROUND.match(line.strip()):
            yield Problem(number, "the command runs until it is stopped; show it in a console block")
        else:
            kept.append(line)
    if any(line.strip() and not line.lstrip().startswith("#") for line in kept):
        yield RunScript(block.line, block.columns, block.pace, text="\n".join(kept) + "\n")


def _not_everywhere(command: str) -> str | None:
    """Return the program of a command that a machine may lack, or None."""
    found = _NOT_EVERYWHERE.search(_QUOTED.sub('""', command))
    return found[1] if found else None


def _whole_lines(block: Block) -> Iterator[tuple[int, str]]:
    """Yield the lines of a script, and the line of the page of each. A backslash at the end joins two."""
    begun = ""
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        begun += line
        if line.endswith("\\"):
            begun += "\n"
            continue
        yield number - begun.count("\n"), begun
        begun = ""
    if begun:
        yield block.end, begun


def _not_json(text: str) -> str | None:
    """Return why a text is neither JSON nor JSON line by line, or None."""
    try:
        json.loads(text)
    except ValueError as error:
        try:
            for line in text.splitlines():
                json.loads(line)
        except ValueError:
            return f"it is not JSON: {error}"
    return None
