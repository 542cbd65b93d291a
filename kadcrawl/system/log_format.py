"""The two forms of a line in the log, text and JSON, from records like `log.info("area.event key=%s", value)`.

A log may quote pages and other peers. No text of theirs begins a line, controls a terminal, or adds a field: the fields
are those of the call's own text. Secrets of this machine are replaced wherever they stand. A decision over records.

Tests: tests/cli/test_log.py, tests/system/test_log_format.py
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from kadcrawl.system.printable import printable, printable_json

HIDDEN = "***"
SECRET_CHARS_MIN = 4
"""Characters of the shortest secret that is hidden. A shorter one would hide parts of common words."""
OTHER_EVENT = "other"
"""The event of a record that a library or an application wrote."""
_EVENT = re.compile(r"(?:[a-z_]+\.(?:[a-z_]+|%s)|%s)\Z")
_NAMED = re.compile(r"(?:^|(?<= ))(?=[a-z_]+=)")
_WORD = re.compile(r"([a-z_]+)=(\S*)")
_CONVERSION = re.compile(r"%(?:%|[-#0 +]*[0-9]*(?:\.[0-9]+)?[a-zA-Z])")

Redact = Callable[[str], str]


def hiding(secrets: Iterable[str]) -> Redact:
    """Return a function that hides these secrets in a text. Of `user:password` the password alone is hidden too."""
    parts = {part for secret in secrets for part in (secret, secret.partition(":")[2])}
    longest_first = sorted((part for part in parts if len(part) >= SECRET_CHARS_MIN), key=len, reverse=True)
    if not longest_first:
        return str
    found = re.compile("|".join(map(re.escape, longest_first)))
    return lambda text: found.sub(HIDDEN, text)


class OneLine(logging.Formatter):
    """A log formatter for untrusted text: no text of pages or peers begins a line of the log or controls a terminal."""

    def __init__(self, form: str, redact: Redact = str) -> None:
        super().__init__(form)
        self._redact = redact

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(self._redact(super().formatMessage(record)))

    def formatException(self, ei: Any) -> str:
        """Return a traceback whose lines never begin like a record: it may quote a page."""
        return "\n".join(f"  {printable(line)}" for line in self._redact(super().formatException(ei)).split("\n"))


class JsonLines(logging.Formatter):
    """A log formatter for programs: each record is one line of JSON, with its traceback if it has one."""

    def __init__(self, peer: Callable[[], str], redact: Redact = str) -> None:
        """`peer` returns the short ID of the peer, or an empty text while there is none."""
        super().__init__()
        self._peer = peer
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        event, fields, text = parts_of(record)
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": event,
            "peer": self._peer(),
            "module": record.name,
            "fields": {
                name: self._redact(value) if isinstance(value, str) else value for name, value in fields.items()
            },
        }
        if text:
            line["text"] = self._redact(text)
        if record.exc_info:
            line["traceback"] = self._redact(self.formatException(record.exc_info))
        return printable_json(json.dumps(line, ensure_ascii=False))


def parts_of(record: logging.LogRecord) -> tuple[str, dict[str, Any], str]:
    """Return the event of a record, its fields, and the rest of its text."""
    event, _, rest = str(record.msg).partition(" ")
    if _EVENT.match(event) is None or not record.name.startswith("kadcrawl"):
        return OTHER_EVENT, {}, record.getMessage()
    arguments = iter(record.args if isinstance(record.args, tuple) else [record.args] if record.args else [])
    event = str(_filled(event, arguments))
    fields: dict[str, Any] = {}
    text = ""
    for part in _NAMED.split(rest):
        name, equals, form = part.partition("=")
        if equals and name.replace("_", "").isalpha() and name.islower():
            fields[name] = _filled(form.rstrip(" "), arguments)
        elif part:
            text = str(_filled(part.rstrip(" "), arguments))
    if text and not fields:  # The fields come as one argument, which is never a text of others.
        fields = dict(_WORD.findall(text))
    return event, fields, text


def _filled(form: str, arguments: Iterator[Any]) -> Any:
    """Return a text with the next arguments filled in. A field of one argument keeps its type as JSON has it."""
    conversions = [found for found in _CONVERSION.findall(form) if found != "%%"]
    taken = tuple(next(arguments, "") for _ in conversions)
    if [form] == conversions and isinstance(taken[0], bool | int | float | None):
        value = taken[0]
        if isinstance(value, float) and "." in form and isfinite(value):
            return float(form % value)
        return value if not isinstance(value, float) or isfinite(value) else str(value)
    return form % taken
