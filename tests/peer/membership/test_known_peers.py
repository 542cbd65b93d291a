"""Test the known peers that a peer journals."""

from types import SimpleNamespace

import msgspec
import pytest

from kadcrawl.keys import id_bytes
from kadcrawl.link.wire.messages import Contact
from kadcrawl.peer.membership.known_peers import KnownPeers

ONE = Contact(id_bytes(1), "10.0.0.1", 4160)


def contacts_of(journaled: bytes | None) -> list[Contact]:
    store = SimpleNamespace(meta=SimpleNamespace(get=lambda name: journaled))
    return KnownPeers(store, lambda: [], None).contacts  # type: ignore[arg-type]


def test_what_is_journaled_is_known_again() -> None:
    assert [ONE] == contacts_of(msgspec.msgpack.encode([ONE]))


@pytest.mark.parametrize(
    "journaled", [None, b"", b"\xc1", msgspec.msgpack.encode([Contact(id_bytes(1), 65 * "a", 4160)])]
)
def test_a_journal_without_readable_contacts_knows_no_peers(journaled: bytes | None) -> None:
    assert [] == contacts_of(journaled)
