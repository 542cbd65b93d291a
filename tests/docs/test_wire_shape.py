"""Test that peers of the version before this one understand what peers of this version send, and the other way."""

import json
from pathlib import Path

import pytest

from kadcrawl.link.wire.basics import WIRE_VERSION, WIRE_VERSION_LEAST, is_spoken
from scripts.docs.wire import structs
from scripts.docs.wire_shape import Shape, breaks, path_of, shape

ROOT = Path(__file__).parents[2]
BEFORE: dict[str, dict[str, str]] = {"message A": {"x": "integer", "y": "text?"}, "part B": {}}


def test_the_shape_of_each_spoken_version_is_kept_and_this_one_only_adds_to_it() -> None:
    for version in filter(is_spoken, range(WIRE_VERSION_LEAST, WIRE_VERSION + 1)):
        assert [] == list(breaks(json.loads((ROOT / path_of(version)).read_text()), shape()))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (BEFORE, []),
        (BEFORE | {"message A": {"x": "integer", "y": "text?", "z": "text?"}, "message C": {"x": "text"}}, []),
        ({"message A": BEFORE["message A"]}, ["part B is gone"]),
        (BEFORE | {"message A": {"y": "text?", "x": "integer"}}, ["message A has other fields or another order"]),
        (BEFORE | {"message A": {"x": "text", "y": "text?"}}, ["message A.x was integer, and is text"]),
        (BEFORE | {"part B": {"new": "text"}}, ["part B.new is new and has no default"]),
    ],
)
def test_what_peers_of_two_versions_would_misunderstand_is_named(after: Shape, said: list[str]) -> None:
    found = list(breaks(BEFORE, after))
    assert len(said) == len(found)
    assert all(text.startswith(start) for text, start in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("version", "spoken"),
    [
        (WIRE_VERSION, True),
        (WIRE_VERSION + 1, True),
        (WIRE_VERSION + 2, False),
        (WIRE_VERSION_LEAST - 1, False),
        (0, False),
    ],
)
def test_a_peer_speaks_with_its_own_version_and_those_beside_it(version: int, spoken: bool) -> None:
    assert spoken == is_spoken(version)


def test_every_message_and_part_lets_a_later_version_add_fields() -> None:
    assert [] == [kind.__name__ for kind in structs() if kind.__struct_config__.forbid_unknown_fields]
