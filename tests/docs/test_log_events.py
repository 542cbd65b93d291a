import ast
import re
from pathlib import Path

import pytest

from scripts.docs.log_events import CHOSEN, LEVELS, LOGGERS, LogEvent, log_events
from scripts.docs.log_meanings import AREAS, MEANINGS
from tests.support.cases import cases

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def events() -> list[LogEvent]:
    return log_events(ROOT)


def test_every_event_is_explained_and_every_explained_event_is_logged(events: list[LogEvent]) -> None:
    assert set(MEANINGS) == {event.name for event in events}


def test_every_area_has_a_title(events: list[LogEvent]) -> None:
    assert set(AREAS) == {event.area for event in events}


@cases("name", MEANINGS)
def test_a_name_is_an_area_and_an_event(name: str) -> None:
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", name)
    assert MEANINGS[name].endswith(".")


def test_no_call_of_a_logger_is_overlooked() -> None:
    """A module has its logger under one of the known names, and gives each text as it stands."""
    for path in (ROOT / "kadcrawl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign) and "logging.getLogger(" in ast.unparse(node.value):
                assert ast.unparse(node.targets[0]) in LOGGERS, path
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS
            if is_call and ast.unparse(node.func.value) in LOGGERS:  # type: ignore[attr-defined]
                assert isinstance(node.args[0], ast.Constant), path  # type: ignore[attr-defined]


def test_the_chosen_names_stand_in_their_files() -> None:
    for (path, pattern), names in CHOSEN.items():
        texts = {
            node.value for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.Constant)
        }
        prefix = pattern.removesuffix("%s")
        assert [] == [name for name in names if name.removeprefix(prefix) not in texts]


def test_the_fields_of_an_event_are_found(events: list[LogEvent]) -> None:
    fields = {event.name: event.fields for event in events}
    assert ("url", "why") == fields["crawl.failed"]
    assert ("from", "why") == fields["link.crowded"]
    assert ("cell", "from", "keys", "pending") == fields["sync.unbelieved"]
