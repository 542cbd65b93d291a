"""Decisions and conversations: a conversation waits, listens, or looks at a clock; every other module is a decision."""

import ast
from typing import Final

from scripts.house.imports import imported_names
from scripts.house.source import Source

NOT_FOR_DECISIONS: Final = {"asyncio", "socket", "time", "aiohttp", "threading", "subprocess", "sqlite3"}
CLOCKS: Final = {
    *(f"time.{name}" for name in ("time", "time_ns", "monotonic", "perf_counter", "process_time", "thread_time")),
    *(
        f"random.{name}"
        for name in ("random", "choice", "choices", "randint", "randrange", "sample", "shuffle", "uniform")
    ),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
}
"""Functions of the standard library that give the time or chance, by their usual names."""


def marks_of_a_conversation(source: Source) -> set[str]:
    """Return the reasons why a module is no decision: imports, and "await". An empty set means a decision."""
    imported = {name.split(".")[0] for name, _ in imported_names(source)}
    waits = any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in ast.walk(source.tree))
    return imported & NOT_FOR_DECISIONS | ({"await"} if waits else set())


def clocks_read(source: Source) -> set[str]:
    """Return the functions of time and chance that a module uses, such as `time.monotonic`.

    `random.sample` counts only where a module `random` is imported, as a parameter may have that name.
    """
    imported = {name for name, _ in imported_names(source)}
    modules = {name.rpartition(".")[2] for name in imported}
    used = {ast.unparse(node) for node in ast.walk(source.tree) if isinstance(node, ast.Attribute)}
    return {name for name in used & CLOCKS if name.split(".")[0] in modules} | imported & CLOCKS
