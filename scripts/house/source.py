"""Source files as syntax trees, and findings: places in them.

Files are read as text; nothing here imports the code it reads, so that a tree that does not run can be measured.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = "kadcrawl"
TREES: Final = (PACKAGE, "sim", "scripts", "fuzz", "tests")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """A file of Python. `path` is relative to the repository, with slashes."""

    path: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """The dotted name that imports this file."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def is_package(self) -> bool:
        """Tell an `__init__.py` from other files."""
        return self.path.endswith("/__init__.py")

    @property
    def folder(self) -> str:
        """The folder that holds this file, with slashes."""
        return self.path.rpartition("/")[0]

    @property
    def lines(self) -> int:
        """Count the lines of the file."""
        return len(self.text.splitlines())


@dataclass(frozen=True, slots=True)
class HouseFinding:
    """A place in a file, and its text for a reader. `size` orders findings of one figure, the worst first."""

    file: str
    line: int
    text: str
    size: int = 1

    @property
    def room(self) -> str:
        """The room that `file` belongs to."""
        return room_of(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def read(root: Path, trees: Sequence[str] = TREES) -> list[Source]:
    """Return the Python files of these folders under `root`, in order of path. Raises SyntaxError."""
    found = []
    for name in trees:
        for path in sorted((root / name).rglob("*.py")):
            found.append(_source(path.relative_to(root).as_posix(), path.read_text()))
    return found


@cache
def _source(path: str, text: str) -> Source:
    """Parse a file once, as several readers need its tree."""
    return Source(path, text, ast.parse(text, path))


def room_of(path: str) -> str:
    """Return the room of a file: the folder or module right under kadcrawl/, or the tree outside of it."""
    tree, *below = path.removesuffix(".py").split("/")
    return below[0] if tree == PACKAGE and below and below[0] not in ("__init__", "__main__") else tree


def functions(tree: ast.AST) -> Iterator[tuple[str, Function]]:
    """Yield each function at any depth with its dotted name inside the file."""
    yield from _functions(tree, "")


def _functions(node: ast.AST, inside: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{inside}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, inside)
