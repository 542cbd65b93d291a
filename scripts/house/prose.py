"""The prose of a source file: docstrings, attribute docstrings, and help texts of command-line options."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from scripts.house.sentences import departures, first_sentence
from scripts.house.source import Function, HouseFinding, Source, room_of

TAKES_HELP: Final = {"option", "argument", "command", "group", "version_option", "Option", "add_argument", "add_parser"}
"""Functions of click and argparse that take `help=`."""
Prose = tuple[int, str]
"""A line and the text that begins there."""


@cache
def prose(source: Source) -> tuple[Prose, ...]:
    """Return each docstring and each help text of a file, in order of line."""
    texts = (text for node in ast.walk(source.tree) for text in (*_docstrings(node), *_help(node)))
    return tuple(sorted(text for text in texts if text[1]))


def _docstrings(node: ast.AST) -> Iterator[Prose]:
    if isinstance(node, ast.Module | ast.ClassDef | Function) and (text := ast.get_docstring(node)):
        yield node.body[0].lineno, text
    for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if not isinstance(block, list):
            continue
        for before, after in pairwise(block):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                yield after.lineno, _text(after.value) if isinstance(after.value, ast.Constant) else ""


def _help(node: ast.AST) -> Iterator[Prose]:
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TAKES_HELP:
        for keyword in node.keywords:
            if keyword.arg in ("help", "short_help"):
                yield keyword.value.lineno, _text(keyword.value)


def _text(value: ast.expr) -> str:
    """Return the text of a literal, with `x` for each value of an f-string, and "" for other expressions."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else ""
    if isinstance(value, ast.JoinedStr):
        return "".join(_text(part) or "x" for part in value.values)
    return ""


def departing_sentences(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each first sentence that breaks rules, the longest list of rules first."""
    found = []
    for source in sources:
        for line, text in prose(source):
            if rules := departures(text):
                sentence = first_sentence(text)
                size = 1000 * len(rules) + len(sentence.split())
                found.append(HouseFinding(source.path, line, f"[{', '.join(rules)}] {sentence}", size))
    return sorted(found, key=lambda finding: (-finding.size, finding.file, finding.line))


def rules_broken(findings: Sequence[HouseFinding]) -> Counter[str]:
    """Count the findings of `departing_sentences` by rule."""
    return Counter(rule for finding in findings for rule in finding.text[1 : finding.text.index("]")].split(", "))


def prose_by_room(sources: Sequence[Source]) -> Counter[str]:
    """Count the pieces of prose of each room."""
    return Counter(room_of(source.path) for source in sources for _ in prose(source))
