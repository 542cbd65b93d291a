"""The tests of a module: `kadcrawl/a/b/c.py` has `tests/a/b/test_c.py`, or its docstring names others.

The line in the docstring is `Tests: tests/peer/test_swarm.py, tests/peer/test_seeds.py`, on a line of its own. A module
that defines no function and no class needs no test, nor does an `__init__.py`: the tests of its package are its tests.
"""

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.house.source import PACKAGE, Function, HouseFinding, Source

_NAMED: Final = re.compile(r"^Tests: (tests/[\w/]+\.py(?:, tests/[\w/]+\.py)*)$", re.MULTILINE)
_MEANT: Final = re.compile(r"^\s*tests?\s*:", re.MULTILINE | re.IGNORECASE)
"""A line that is meant to name tests, in the right form or not."""


def files_that_test(source: Source) -> list[str]:
    """Return the paths of the files that test a module. Raises ValueError for a malformed line `Tests:`."""
    docstring = ast.get_docstring(source.tree) or ""
    named = _NAMED.findall(docstring)
    if len(named) != len(_MEANT.findall(docstring)) or len(named) > 1:
        raise ValueError(f"{source.path}: write one line `Tests: tests/a/test_b.py[, tests/...]` in the docstring")
    if named:
        return [str(path) for path in named[0].split(", ")]
    folder, _, name = source.path.removeprefix(f"{PACKAGE}/").rpartition("/")
    return ["/".join(part for part in ("tests", folder, f"test_{name}") if part)]


def untested(root: Path, sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each module with code whose tests are not there."""
    found = []
    for source in sources:
        if source.path.endswith("/__init__.py"):
            continue
        if not any(isinstance(node, Function | ast.ClassDef) for node in ast.walk(source.tree)):
            continue
        try:
            missing = [path for path in files_that_test(source) if not (root / path).is_file()]
        except ValueError as error:
            found.append(HouseFinding(source.path, 1, str(error)))
            continue
        found += [HouseFinding(source.path, 1, f"there is no {path}") for path in missing]
    return found


def folders_without_theory(root: Path) -> list[HouseFinding]:
    """Return a finding for each folder with Python files below it that has no `__init__.py` with a docstring."""
    found = []
    for folder in sorted({parent for path in (root / PACKAGE).rglob("*.py") for parent in path.parents}):
        if not folder.is_relative_to(root / PACKAGE):
            continue
        init = folder / "__init__.py"
        if not init.is_file() or not ast.get_docstring(ast.parse(init.read_text())):
            found.append(HouseFinding(init.relative_to(root).as_posix(), 1, "is missing or has no docstring"))
    return found
