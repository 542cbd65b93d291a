"""The page of log events, found in the calls of loggers in the package.

A call names its event in its text: `log.info("area.event key=%s", ...)`. Where a part of the name is an argument of a
function, the calls of that function name it. Tests: tests/docs/test_log_events.py
"""

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kadcrawl.system.log_format import JsonLines
from scripts.docs.log_meanings import AREAS, MEANINGS
from scripts.docs.markdown import code, page, prose, table

PAGE = "docs/reference/log-events.md"
LINE_FIELDS = (
    ("time", "text", "always", "Time in UTC, in the form of RFC 3339 with milliseconds."),
    ("level", "text", "always", "`debug`, `info`, `warning`, `error` or `critical`."),
    ("event", "text", "always", "The event, as the tables below name it. `other` for a line of a library."),
    (
        "peer",
        "text",
        "always",
        "The first eight digits of the peer's ID, as the status shows it, or `peer-3` with `--in-process`.",
    ),
    ("module", "text", "always", "The module of kadcrawl, or the library."),
    (
        "fields",
        "object",
        "always",
        "The fields of the event by name. Numbers and truth values are those of JSON, and all else is text.",
    ),
    ("text", "text", "if any", "The text of a line beyond its fields: for `other` all of it."),
    ("traceback", "text", "after a bug", "The traceback, with its lines in one text."),
)
"""The fields of a line of JSON: name, type, when it is there, and meaning."""
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
LOGGERS = {"log", "_log"}
CHOSEN = {
    ("kadcrawl/crawl/disk_guard.py", "%s"): ("disk.full", "disk.has_room"),
    ("kadcrawl/crawl/proxies/health_checks.py", "proxy.%s"): ("proxy.dead", "proxy.alive"),
}
"""Events whose names are chosen right before the call, by file and first word of the text."""
_FIELD = re.compile(r"\b([a-z_]+)=")


class LogEvent(NamedTuple):
    """One event of the log, from one call."""

    name: str
    level: str
    fields: tuple[str, ...]
    path: str
    """The file, below the repository's root."""

    @property
    def area(self) -> str:
        """The first word of the name."""
        return self.name.partition(".")[0]


def log_events(root: Path) -> list[LogEvent]:
    """Return the events of all calls of loggers in the package."""
    found: list[LogEvent] = []
    for path in sorted((root / "kadcrawl").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(f"{logger}." in text for logger in LOGGERS):  # Parsing takes most of the time.
            found += _of_file(path.relative_to(root).as_posix(), ast.parse(text))
    return found


def _of_file(path: str, tree: ast.Module) -> Iterator[LogEvent]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if (call := _log_call(node)) is None:
                continue
            level, text = call
            event, _, rest = text.partition(" ")
            level = "error" if level == "exception" else level
            if "%s" not in event:
                yield LogEvent(event, level, tuple(_FIELD.findall(rest)), path)
            elif (path, event) in CHOSEN:
                for name in CHOSEN[path, event]:
                    yield LogEvent(name, level, tuple(_FIELD.findall(rest)), path)
            else:
                for word, fields in _calls_of(tree, function.name):
                    yield LogEvent(event.replace("%s", word), level, (*_FIELD.findall(rest), *fields), path)


def _log_call(node: ast.AST) -> tuple[str, str] | None:
    """Return the level and the text of a call of a logger, or None for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in LEVELS:
        return None
    if not isinstance(node.func.value, ast.Name) or node.func.value.id not in LOGGERS:
        return None
    text = node.args[0]
    return node.func.attr, text.value if isinstance(text, ast.Constant) else ""  # type: ignore[return-value]


def _calls_of(tree: ast.Module, function: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the word that each call of a function names first, and the fields in its other texts."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != function:
            continue
        if isinstance(node.args[0], ast.Constant):
            rest = [one for argument in node.args[1:] for one in ast.walk(argument)]
            texts = [str(one.value) for one in rest if isinstance(one, ast.Constant)]
            yield str(node.args[0].value), tuple(_FIELD.findall(" ".join(texts)))


def example_line() -> str:
    """Return an event of a page that failed, as a line of JSON."""
    text, values = "crawl.failed url=%s why=%s", ("https://example.org/gone", "http_404")
    record = logging.LogRecord("kadcrawl.crawl.attempt", logging.INFO, "", 0, text, values, None)
    record.created = 1_795_255_200.123
    return JsonLines(lambda: "a6da4c0e").format(record)


def generate(root: Path) -> dict[str, str]:
    """Return the page of log events."""
    events = log_events(root)
    parts = []
    for area, title in AREAS.items():
        rows = []
        for name in sorted({event.name for event in events if event.area == area}):
            same = [event for event in events if event.name == name]
            levels = ", ".join(dict.fromkeys(event.level for event in same))
            fields = ", ".join(
                code(field) for field in dict.fromkeys(field for event in same for field in event.fields)
            )
            places = ", ".join(
                f"[{Path(path).stem}](../../{path})" for path in dict.fromkeys(event.path for event in same)
            )
            rows.append([code(name), levels, fields, prose(MEANINGS[name]), places])
        parts += [f"## {area}: {title}", table(["event", "level", "fields", "meaning", "module"], rows)]
    return {
        PAGE: page(
            "Log events",
            "the calls of loggers in `kadcrawl` and `scripts/docs/log_meanings.py`",
            "Each peer writes `peer.log` into its directory. A line has the time, the level, the module, the event, "
            "and fields as `key=value`:",
            "```text\n2026-11-21 10:00:00,123 INFO kadcrawl.crawl.attempt crawl.failed url=https://example.org/gone "
            "why=http_404\n```",
            "A log is closed at 10 MB, and three closed logs are kept. `--log-level` (or "
            "[KADCRAWL_LOG](environment.md#kadcrawl_log)) sets the lowest level, and is `info` by default. Texts of "
            "sites and peers cannot begin a line or control a terminal. Repeated refusals are left out, and the next "
            "such line has their number.",
            "## Lines of JSON",
            "With `--log-format json` each line is one JSON object in UTF-8. No traceback has lines of its own. "
            "Secrets of the machine and the swarm's key are replaced by `***` in both forms.",
            table(["field", "type", "present", "meaning"], [[code(name), *rest] for name, *rest in LINE_FIELDS]),
            f"```json\n{example_line()}\n```",
            *parts,
        )
    }
