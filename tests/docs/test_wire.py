from pathlib import Path

from msgspec import Struct, inspect

from kadcrawl.link.wire.basics import Message
from kadcrawl.overlay.datagrams import KINDS, REPLY_TO
from scripts.docs.docstrings import field_docstrings
from scripts.docs.wire import PAGE, REPLIES, REQUESTS, TOPICS, generate, reply_to, structs, text_of
from scripts.docs.wire_fields import FIELDS
from tests.support.cases import cases

ROOT = Path(__file__).parents[2]
FIELDS_OF = {kind: [field.name for field in inspect.type_info(kind).fields] for kind in structs()}  # type: ignore[attr-defined]


def test_every_message_has_a_section() -> None:
    text = generate(ROOT)[PAGE]
    names = [kind.__name__ for kind in (*REQUESTS, *REPLIES, *KINDS)]
    assert [] == [name for name in names if f"\n### {name}\n" not in text]


@cases("kind", [*REQUESTS, *REPLY_TO])
def test_every_request_names_its_reply_and_says_what_a_repeat_means(kind: type[Struct]) -> None:
    assert reply_to(kind) in {reply.__name__ for reply in (*REPLIES, *KINDS)}
    assert "repeat" in (kind.__doc__ or "")


@cases("kind", structs())
def test_every_field_has_a_meaning(kind: type[Struct]) -> None:
    assert [] == [name for name in FIELDS_OF[kind] if not text_of(ROOT, kind, name)]


def test_every_meaning_is_that_of_a_field_without_a_docstring() -> None:
    bare = {
        (kind.__name__, name)
        for kind, names in FIELDS_OF.items()
        for name in names
        if not field_docstrings(ROOT, kind)[name]
    }
    used = {f"{kind}.{name}" if f"{kind}.{name}" in FIELDS else name for kind, name in bare}
    assert set() == FIELDS.keys() - used


def test_every_module_of_messages_is_a_topic() -> None:
    folder = ROOT / "kadcrawl/link/wire"
    defining = {
        path.stem
        for path in folder.glob("*.py")
        if "Struct, frozen" in path.read_text() or "(Message," in path.read_text()
    }
    assert set(TOPICS) == defining
    assert Message not in structs()
