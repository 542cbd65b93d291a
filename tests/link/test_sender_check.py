"""Test that requests which name their sender are known as requests with a sender."""

from types import SimpleNamespace
from typing import get_args

import msgspec
import pytest

from kadcrawl.link.sender_check import SENDER_ID
from kadcrawl.link.wire.messages import Contact, Message, Request

OTHERS = {"FindRanges"}
"""Hold IDs or contacts, but none of the asker's."""


def test_every_question_with_an_id_of_its_own_names_its_speaker() -> None:
    named = set()
    for kind in get_args(Request):
        for field in msgspec.structs.fields(kind):
            if field.type is Contact or field.name in (
                "asker",
                "leaf",
                "sender",
                "owner",
                "holder",
                "lender",
                "borrower",
                "peer",
            ):
                named.add(kind)
    assert named - set(SENDER_ID) == set()
    assert {kind.__name__ for kind in set(SENDER_ID) - named} - OTHERS == set()


@pytest.mark.parametrize("kind", SENDER_ID, ids=lambda kind: kind.__name__)
def test_the_sender_is_read_from_a_field_of_its_request(kind: type[Message]) -> None:
    fields = {name: SimpleNamespace(id=name) for name in kind.__struct_fields__}
    assert SENDER_ID[kind](SimpleNamespace(**fields)) in (*fields, *fields.values())
