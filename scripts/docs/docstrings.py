"""Attribute docstrings: the texts below the fields of a class and below the constants of a module."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path


def attribute_docstrings(body: Sequence[ast.stmt]) -> dict[str, str]:
    """Return the docstring of each assigned name in the body of a class or a module, or an empty text."""
    return dict(_documented(body))


def _documented(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, below in zip(body, [*body[1:], ast.Pass()], strict=True):
        if names := _names(statement):
            text = ""
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = inspect.cleandoc(str(below.value.value))
            for name in names:
                yield name, text


def _names(statement: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [
        name.id
        for target in targets
        for name in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(name, ast.Name)
    ]


@cache
def _classes(text: str) -> dict[str, ast.ClassDef]:
    """Parse a module once for all its classes."""
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def field_docstrings(root: Path, kind: type) -> dict[str, str]:
    """Return the docstring of each field of a class of the package, its bases in the same file included."""
    path = root / f"{kind.__module__.replace('.', '/')}.py"
    classes = _classes(path.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ == kind.__module__ and base.__name__ in classes:
            found |= attribute_docstrings(classes[base.__name__].body)
    return found
