"""Test that requests which name their sender are known as requests with a sender."""

from typing import get_args

import msgspec

from kadcrawl.link.sender_check import SENDER_ID
from kadcrawl.link.wire.messages import Contact, Request

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
                "giver",
                "taker",
                "peer",
            ):
                named.add(kind)
    assert named - set(SENDER_ID) == set()
    assert {kind.__name__ for kind in set(SENDER_ID) - named} - OTHERS == set()
