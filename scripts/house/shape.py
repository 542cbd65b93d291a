"""Sizes and names: files per folder, lines, parameters, and names that are defined in more than one place."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence

from scripts.house.source import Function, HouseFinding, Source, functions

FOLDER_FILES_AIM = 16
FILE_LINES_AIM = 350
FUNCTION_LINES_AIM = 80
FUNCTION_LINES_SCREEN = 50
PARAMETERS_AIM = 10
TEST_NAME_AIM = 70
"""Characters in the name of a test."""
WIRE = "kadcrawl/link/wire/"
"""The wire is one specification, so its files may be long."""
HELPERS = "tests/support/"
"""The one place for helpers that several files of tests use."""


def folder_sizes(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return the number of Python files of each folder, `__init__.py` included."""
    count: dict[str, int] = defaultdict(int)
    for source in sources:
        count[source.folder] += 1
    return _worst_first(HouseFinding(f"{folder}/", 1, f"{n} files", n) for folder, n in count.items())


def file_sizes(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return the lines of each file but those of the wire."""
    return _worst_first(
        HouseFinding(source.path, 1, f"{source.lines} lines", source.lines)
        for source in sources
        if not source.path.startswith(WIRE)
    )


def function_sizes(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return the lines of each function, docstring included and decorators not."""
    return _worst_first(
        HouseFinding(source.path, node.lineno, f"{name}: {lines} lines", lines)
        for source in sources
        for name, node in functions(source.tree)
        for lines in [(node.end_lineno or node.lineno) - node.lineno + 1]
    )


def parameter_counts(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return the number of parameters of each function, without self and cls.

    A dataclass without an `__init__` of its own is a parameter object, so its fields are not counted.
    """
    return _worst_first(
        HouseFinding(source.path, node.lineno, f"{name}: {n} parameters", n)
        for source in sources
        for name, node in functions(source.tree)
        for n in [_parameters(node)]
    )


def _parameters(node: Function) -> int:
    arguments = node.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    bound = bool(positional) and positional[0] in ("self", "cls")
    return len(positional) - bound + len(arguments.kwonlyargs) + bool(arguments.vararg) + bool(arguments.kwarg)


def repeated_classes(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each class name that is defined more than once in these files, at any depth."""
    return _repeated(
        (node.name, source.path, node.lineno)
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    )


def repeated_test_helpers(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each top-level name that is no test and is defined in several files of tests.

    Files of tests/support/ are left out.
    """
    return _repeated(
        (node.name, source.path, node.lineno)
        for source in sources
        if source.path.startswith("tests/") and not source.path.startswith(HELPERS)
        for node in source.tree.body
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith(("test_", "Test"))
    )


def long_test_names(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each test whose name has more than 70 characters."""
    return _worst_first(
        HouseFinding(source.path, node.lineno, f"{node.name} ({len(node.name)} characters)", len(node.name))
        for source in sources
        for _, node in functions(source.tree)
        if node.name.startswith("test_") and len(node.name) > TEST_NAME_AIM
    )


def _repeated(definitions: Iterable[tuple[str, str, int]]) -> list[HouseFinding]:
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, path, line in definitions:
        places[name].append((path, line))
    return _worst_first(
        HouseFinding(*where[0], f"{name} is defined {len(where)} times: {', '.join(_listed(where))}", len(where))
        for name, where in places.items()
        if len(where) > 1
    )


def _listed(where: Sequence[tuple[str, int]]) -> list[str]:
    return [f"{path}:{line}" for path, line in where]


def _worst_first(findings: Iterable[HouseFinding]) -> list[HouseFinding]:
    return sorted(findings, key=lambda finding: (-finding.size, finding.file, finding.line))
