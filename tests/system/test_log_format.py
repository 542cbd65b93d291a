"""Test that a line of JSON has the fields of its event, whatever the values are, and no secret."""

import ast
import json
import logging
import re
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.system.log_format import HIDDEN, OTHER_EVENT, JsonLines, OneLine, hiding, parts_of
from scripts.docs.log_events import LOGGERS, _log_call

ROOT = Path(__file__).parents[2]
FORGED = 'x\n{"event": "swarm.done"}\x1b[2J\u202e'


def record(text: str, *values: Any, name: str = "kadcrawl.test", error: Exception | None = None) -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord(name, logging.WARNING, "", 0, text, values, exc_info)


def line(of: logging.LogRecord, *secrets: str) -> dict[str, Any]:
    """Return the line of a record, which must be one line."""
    text = JsonLines(lambda: "a6da4c0e", hiding(secrets)).format(of)
    assert text.isprintable()
    decoded: dict[str, Any] = json.loads(text)
    return decoded


@pytest.mark.parametrize(
    ("text", "values", "event", "fields"),
    [
        ("swarm.former_key_ended", (), "swarm.former_key_ended", {}),
        ("peer.begun at=%s:%d pending=%d", ("::1", 4160, 7), "peer.begun", {"at": "::1:4160", "pending": 7}),
        ("peer.stalled seconds=%.1f", (1.25,), "peer.stalled", {"seconds": 1.2}),
        ("cell.opened hold=%s of=%s", (True, None), "cell.opened", {"hold": True, "of": None}),
        ("%s reserve_bytes=%d", ("disk.full", 5), "disk.full", {"reserve_bytes": 5}),
        ("link.%s why=%s%s", ("crowded", "b", " (and 2)"), "link.crowded", {"why": "b (and 2)"}),
        ("link.banned from=%s why=it was wrong", ("a",), "link.banned", {"from": "a", "why": "it was wrong"}),
        ("state.synced of=%s %r seeds=%d", ("a", "b", 2), "state.synced", {"of": "a 'b'", "seeds": 2}),
        ("balance.x rate=%.1e", (0.00123,), "balance.x", {"rate": 0.0012}),
        ("a.b c=100%% d=%s", ("e",), "a.b", {"c": "100%", "d": "e"}),
    ],
)
def test_the_fields_are_those_of_the_call(
    text: str, values: tuple[Any, ...], event: str, fields: dict[str, Any]
) -> None:
    assert (event, fields, "") == parts_of(record(text, *values))


def test_fields_that_come_as_one_argument_are_found() -> None:
    said = parts_of(record("sync.%s %s%s", "silent", "cell=3 from=a", ""))
    assert ("sync.silent", {"cell": "3", "from": "a"}, "cell=3 from=a") == said


@pytest.mark.parametrize("name", ["asyncio", "an.application"])
def test_a_line_of_a_library_is_text(name: str) -> None:
    assert (OTHER_EVENT, {}, "a.b url=x") == parts_of(record("a.b url=%s", "x", name=name))
    assert (OTHER_EVENT, {}, "Task was destroyed!") == parts_of(record("Task was destroyed!"))


def test_a_value_adds_no_field_and_no_line() -> None:
    said = line(record("crawl.failed url=%s why=%s", FORGED, "a pages=0 event=swarm.done"))
    assert {"url": FORGED, "why": "a pages=0 event=swarm.done"} == said["fields"]
    assert "crawl.failed" == said["event"]


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_numbers_that_json_lacks_are_text(value: float) -> None:
    assert isinstance(line(record("a.b c=%.1f", value))["fields"]["c"], str)
    assert isinstance(line(record("a.b c=%s", value))["fields"]["c"], str)


def test_a_traceback_is_one_text() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as error:
        said = line(record("crawl.bug url=%s", "x", error=error))
    assert said["traceback"].startswith("Traceback (most recent call last):\n")
    assert FORGED in said["traceback"]


def test_time_is_utc_and_level_is_small() -> None:
    of = record("a.b")
    of.created = 0.25
    said = line(of)
    assert ("1970-01-01T00:00:00.250Z", "warning", "a6da4c0e", "kadcrawl.test") == (
        said["time"],
        said["level"],
        said["peer"],
        said["module"],
    )
    assert ["time", "level", "event", "peer", "module", "fields"] == list(said)


def test_secrets_are_hidden_in_both_forms() -> None:
    secrets = ("crawler:s3cret-word", "token-1234", "abc")
    try:
        raise ValueError("401 for token-1234")
    except ValueError as error:
        of = record("login.failed why=%s", "s3cret-word crawler:s3cret-word token-1234 abc", error=error)
    said = line(of, *secrets)
    assert f"{HIDDEN} {HIDDEN} {HIDDEN} abc" == said["fields"]["why"], "a secret of three characters is part of words"
    assert f"ValueError: 401 for {HIDDEN}" in said["traceback"]
    text = OneLine("%(message)s", hiding(secrets)).format(of)
    assert "s3cret" not in text
    assert "token" not in text
    assert "x" == hiding([])("x")


def calls() -> list[tuple[str, str]]:
    """Return (module, text) of each call of a logger in the package."""
    found = []
    for path in sorted((ROOT / "kadcrawl").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if any(f"{logger}." in text for logger in LOGGERS) else ():
            if isinstance(node, ast.Call) and (call := _log_call(node)) is not None:
                found.append((path.stem, call[1]))
    return found


def test_every_call_of_the_package_has_an_event_and_its_fields() -> None:
    """A value has spaces and equal signs in it, as a text of another peer may."""
    found = calls()
    assert len(found) > 100
    for module, text in found:
        conversions = [found[-1] for found in re.findall(r"%[-#0-9.]*[a-zA-Z]", text)]
        values = tuple(1 if kind in "dfe" else "a b=c" for kind in conversions)
        event, fields, rest = parts_of(record(text, *values))
        assert OTHER_EVENT != event, (module, text)
        named = re.findall(r"(?:^| )([a-z_]+)=", text)
        if named:
            assert (named, "") == (list(fields), rest), (module, text)
