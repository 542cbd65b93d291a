"""Attributes assigned from outside their object: `peer.rounds.on_due = ...` in place of a constructor argument.

An assignment to `x.attr` is inside if `x` is the first parameter of the method around it, or a name that the same
function, or a function around it, has bound to an object it has just made. An object is just made by a call of a class
or of a method of a class (a capital letter, `cls`, `type(x)`), by `replace` or by `copy`; `with` and `:=` bind as `=`
does, and a function or class defined there is just made too. All else is outside: `self.x.attr = ...`, a parameter, a
global; `+=`, `del` and `setattr(x, ...)` count as `=` does. Types are not known, so a function that builds and returns
an object under a small letter is taken for a lookup, and assignments to its result are counted.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from scripts.house.source import Function, HouseFinding, Source

COPIES: Final = {"replace", "_replace", "copy", "deepcopy", "__new__"}
Bound = tuple[ast.expr, ast.expr | None]
"""A target and the expression bound to it."""


@dataclass(frozen=True, slots=True)
class _Scope:
    own: frozenset[str]
    """Names whose attributes may be assigned here."""
    function: str


def assigned_from_outside(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each assignment, in order of file and line."""
    return [finding for source in sources for finding in sorted(_in_file(source), key=lambda finding: finding.line)]


def attribute(finding: HouseFinding) -> str:
    """Return the name of the attribute that a finding is about."""
    return finding.text.rpartition(".")[2]


def _in_file(source: Source) -> Iterator[HouseFinding]:
    yield from _in_scope(source.path, source.tree, _Scope(_fresh(source.tree), "module"))


def _in_scope(path: str, scope: ast.AST, known: _Scope) -> Iterator[HouseFinding]:
    for node in _statements(scope):
        if isinstance(node, Function):
            inherited = known.own if known.function != "module" else frozenset()
            own = inherited | _first_parameter(node, scope) | _fresh(node)
            yield from _in_scope(path, node, _Scope(own, node.name))
        elif isinstance(node, ast.ClassDef):
            yield from _in_scope(path, node, known)
        else:
            for target in _attributes_set(node):
                if not (isinstance(target.value, ast.Name) and target.value.id in known.own):
                    yield HouseFinding(path, target.lineno, f"{known.function}: {ast.unparse(target)}")


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope in order. Functions and classes are yielded, not entered."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, Function | ast.ClassDef):
            yield from _statements(child)


def _attributes_set(node: ast.AST) -> Iterator[ast.Attribute]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "object.__setattr__") and node.args:
        name = ast.literal_eval(node.args[1]) if isinstance(node.args[1], ast.Constant) else "..."
        yield ast.Attribute(node.args[0], str(name), ast.Store(), lineno=node.lineno, col_offset=node.col_offset)
    for target in targets:
        yield from (part for part in _parts(target) if isinstance(part, ast.Attribute))


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _parts(element)
    elif isinstance(target, ast.Starred):
        yield from _parts(target.value)
    else:
        yield target


def _first_parameter(node: Function, scope: ast.AST) -> frozenset[str]:
    static = any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)
    if not isinstance(scope, ast.ClassDef) or static:
        return frozenset()
    return frozenset(argument.arg for argument in (*node.args.posonlyargs, *node.args.args)[:1])


def _fresh(scope: ast.AST) -> frozenset[str]:
    names = set()
    for node in _statements(scope):
        if isinstance(node, Function | ast.ClassDef):
            names.add(node.name)
        for target, value in _bound(node):
            if isinstance(target, ast.Name) and value is not None and _makes(value):
                names.add(target.id)
    return frozenset(names)


def _bound(node: ast.AST) -> Iterator[Bound]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        yield node.target, node.value
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def _makes(value: ast.expr) -> bool:
    """Tell whether an expression makes an object, as far as its looks say."""
    if isinstance(value, ast.Await):
        value = value.value
    if not isinstance(value, ast.Call):
        return False
    names = ast.unparse(value.func).split(".")
    return (
        names[-1] in COPIES
        or names[0].startswith("type(")
        or any(name == "cls" or name.lstrip("_")[:1].isupper() for name in names)
    )
