"""Test that only the recipient reads a sealed datagram, and only once, after any change on the way."""

from random import Random
from typing import cast

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given, strategies as st

from kadcrawl.members import sealing
from kadcrawl.members.peer_key import PeerKey, id_of
from kadcrawl.members.sealing import BODY_AT, HEADER_BYTES, SEAL_BYTES, OpenedDatagram, Sealing
from kadcrawl.members.swarm_key import LABEL_BYTES, SwarmKey

KEY, NEW = SwarmKey(b"k" * 32), SwarmKey(b"n" * 32)
ANNE, BERT, CARL = (PeerKey(bytes((number,)) * 32) for number in range(3))


def sealing_of(key: PeerKey, *keys: SwarmKey, first: int = 0) -> Sealing:
    return Sealing(key, keys or (KEY,), first)


def acquainted() -> tuple[Sealing, Sealing]:
    """Return Anne and Bert, who have heard of each other."""
    anne, bert = sealing_of(ANNE), sealing_of(BERT)
    assert bert.open(sealed(anne, b"hello", None)) is not None
    assert anne.open(sealed(bert, b"hello", ANNE.id)) is not None
    return anne, bert


def sealed(by: Sealing, said: bytes, to: bytes | None, *, again: bool = False) -> bytes:
    datagram = by.seal(said, to, again=again)
    assert datagram is not None
    assert said not in datagram or len(said) < 4
    assert len(datagram) == len(said) + SEAL_BYTES
    return datagram


def disguised(key: PeerKey, other: PeerKey) -> Sealing:
    """Return a member that begins its datagrams as another does, with numbers as large as there are."""
    forger = sealing_of(PeerKey(key.seed), first=2**63)
    forger.peer_key.public, forger.peer_key.id = other.public, other.id
    forger._paired_as = forger._paired_as[:1] + other.public
    return forger


def test_a_greeting_proves_no_sender_and_its_answer_does() -> None:
    anne, bert = sealing_of(ANNE), sealing_of(BERT)
    assert bert.open(sealed(anne, b"who is there?", None)) == OpenedDatagram(b"who is there?", ANNE.id, False)
    assert bert.knows(ANNE.id)
    assert not anne.knows(BERT.id)
    assert anne.open(sealed(bert, b"Bert", ANNE.id)) == OpenedDatagram(b"Bert", BERT.id, True)
    assert bert.open(sealed(anne, b"Bert!", BERT.id)) == OpenedDatagram(b"Bert!", ANNE.id, True)


def test_a_first_contact_is_for_one_only() -> None:
    anne, bert, carl = sealing_of(ANNE), sealing_of(BERT), sealing_of(CARL)
    datagram = sealed(anne, b"Bert?", BERT.id)
    assert carl.open(datagram) is None
    assert bert.open(datagram) == OpenedDatagram(b"Bert?", ANNE.id, False)


def test_what_must_be_proven_is_not_said_to_whom_one_does_not_know() -> None:
    anne, bert = sealing_of(ANNE), sealing_of(BERT)
    assert anne.seal(b"goodbye", BERT.id, proven=True) is None
    anne, bert = acquainted()
    goodbye = anne.seal(b"goodbye", BERT.id, proven=True)
    assert goodbye is not None
    assert bert.open(goodbye) == OpenedDatagram(b"goodbye", ANNE.id, True)


@pytest.mark.parametrize("to", [None, BERT.id], ids=["greeting", "paired"])
def test_each_datagram_counts_once(to: bytes | None) -> None:
    anne, bert = acquainted()
    datagrams = [sealed(anne, bytes((number,)), to) for number in range(20)]
    Random(1).shuffle(datagrams)
    assert all(bert.open(datagram) for datagram in datagrams)
    assert not any(bert.open(datagram) for datagram in datagrams)


def test_our_own_datagram_comes_back_in_vain() -> None:
    anne, _ = acquainted()
    assert anne.open(sealed(anne, b"to all", None)) is None
    assert anne.open(sealed(anne, b"to Bert", BERT.id)) is None


def test_what_comes_again_is_not_decrypted_again() -> None:
    class Unused:
        """No cipher."""

    anne, bert = acquainted()
    for_bert = sealed(anne, b"once", BERT.id)
    assert bert.open(for_bert) is not None
    bert._correspondents[ANNE.public].ciphers[KEY.label] = cast(ChaCha20Poly1305, Unused())
    assert bert.open(for_bert) is None
    with pytest.raises(AttributeError):
        bert.open(sealed(anne, b"twice", BERT.id))


def test_what_was_for_one_peer_is_nothing_to_another() -> None:
    anne, bert = acquainted()
    carl = sealing_of(CARL)
    assert carl.open(sealed(anne, b"hello", None)) is not None
    datagram = sealed(anne, b"for Bert", BERT.id)
    assert carl.open(datagram) is None
    assert bert.open(datagram) is not None


@given(st.integers(0, 2**16), st.integers(0, 7), st.booleans())
def test_whatever_is_changed_on_the_way_is_noticed(place: int, bit: int, pair: bool) -> None:
    anne, bert = acquainted()
    datagram = bytearray(sealed(anne, b"a few words", BERT.id if pair else None))
    datagram[place % len(datagram)] ^= 1 << bit
    assert bert.open(bytes(datagram)) is None


@given(st.binary(max_size=200), st.booleans())
def test_nothing_a_non_member_sends_is_taken(data: bytes, labelled: bool) -> None:
    _, bert = acquainted()
    assert bert.open((KEY.label if labelled else b"") + data) is None


def test_a_datagram_cut_short_is_nothing() -> None:
    anne, bert = acquainted()
    datagram = sealed(anne, b"a few words", BERT.id)
    assert not any(bert.open(datagram[:length]) for length in range(len(datagram)))


def test_a_member_that_takes_anothers_name_cannot_shut_it_out() -> None:
    """Any member can send introductions in the name of any key, with numbers as large as there are."""
    anne, bert = acquainted()
    forger = disguised(CARL, ANNE)
    assert forger.open(sealed(bert, b"hello", None)) is not None
    assert bert.open(sealed(forger, b"I am Anne", None)) == OpenedDatagram(b"I am Anne", ANNE.id, False)
    forged = forger.seal(b"I am Anne", BERT.id, proven=True)
    assert forged is not None, "it knows Bert, so it does what it can"
    assert bert.open(forged) is None
    assert bert.open(sealed(anne, b"no, I am", BERT.id)) == OpenedDatagram(b"no, I am", ANNE.id, True)


def test_a_public_key_with_which_no_secret_can_be_shared_is_refused() -> None:
    bert = sealing_of(BERT)
    for public in (bytes(32), (1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little")):
        forger = sealing_of(ANNE)
        forger.peer_key = PeerKey(ANNE.seed)
        forger.peer_key.public = public
        greeting = forger.seal(b"hello", None)
        assert greeting is not None
        assert bert.open(greeting) is None
        assert not bert.knows(id_of(public))


def test_nonces_of_a_pair_never_meet() -> None:
    """One key in both directions: the same number at both ends is two nonces."""
    anne, bert = acquainted()
    one, two = sealed(anne, bytes(32), BERT.id), sealed(bert, bytes(32), ANNE.id)
    assert one[HEADER_BYTES - 8 : HEADER_BYTES] == two[HEADER_BYTES - 8 : HEADER_BYTES]
    assert one[SEAL_BYTES - 16 :] != two[SEAL_BYTES - 16 :]


def test_those_beyond_the_bound_are_forgotten_and_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "CORRESPONDENTS_MAX", 2)
    bert = sealing_of(BERT)
    others = [sealing_of(PeerKey(bytes((9, number)) * 16)) for number in range(4)]
    for other in others:
        assert bert.open(sealed(other, b"hello", None)) is not None
    assert [bert.knows(other.peer_key.id) for other in others] == [False, False, True, True]
    assert bert.open(sealed(others[0], b"again", BERT.id)) is not None


def test_with_two_keys_each_is_answered_by_the_one_it_speaks() -> None:
    anne, bert = acquainted()
    anne.use_keys((NEW, KEY))
    assert anne.labels == (NEW.label, KEY.label)
    assert bert.open(sealed(anne, b"by the old one, as you do", BERT.id)) is not None
    assert bert.open(sealed(anne, b"by the new one, if I hear nothing", BERT.id, again=True)) is None
    bert.use_keys((KEY, NEW))
    opened = bert.open(sealed(anne, b"by the new one", BERT.id, again=True))
    assert opened is not None
    assert sealed(bert, b"so do I", ANNE.id)[:LABEL_BYTES] == NEW.label
    carl = sealing_of(CARL, NEW)
    assert anne.open(sealed(carl, b"hello", None)) is not None
    assert carl.open(sealed(anne, b"hello", CARL.id)) is not None
    anne.use_keys((NEW,))
    bert.use_keys((KEY,))
    assert anne.open(sealed(bert, b"by the old one", ANNE.id)) is None


def test_a_run_begins_above_all_numbers_of_the_one_before() -> None:
    anne, bert = acquainted()
    for number in range(1000):
        assert bert.open(sealed(anne, bytes(8), BERT.id)) is not None, number
    again = sealing_of(ANNE, first=sealing.NUMBERS_PER_SECOND)
    assert bert.open(sealed(again, b"back", None)) is not None
    assert again.open(sealed(bert, b"welcome", ANNE.id)) is not None
    assert bert.open(sealed(again, b"thanks", BERT.id)) == OpenedDatagram(b"thanks", ANNE.id, True)


def test_the_beginnings_of_datagrams_cost_one_shared_secret_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener can repeat the beginning of a datagram at will, to peers that do not know the sender."""
    anne, bert = acquainted()
    seen = [sealed(anne, bytes(50), BERT.id), sealed(bert, bytes(50), ANNE.id)]
    carl = sealing_of(CARL)
    asked: list[bytes] = []
    shared_with = PeerKey.shared_with

    def counted(ours: PeerKey, public: bytes) -> bytes:
        asked.append(public)
        return shared_with(ours, public)

    monkeypatch.setattr(PeerKey, "shared_with", counted)
    for number in range(100):
        for one in seen:
            for datagram in (one[:BODY_AT] + bytes(66 + number), one[:-16] + bytes(16), one):
                assert carl.open(datagram) is None
    assert asked == [ANNE.public, BERT.public]
    assert carl.open(sealed(anne, b"hello", None)) == OpenedDatagram(b"hello", ANNE.id, False)
    monkeypatch.setattr(sealing, "UNPROVEN_MAX", 3)
    for number in range(10):
        forger = sealing_of(PeerKey.generate())
        assert carl.open(sealed(forger, b"x", None)[:BODY_AT] + bytes(99)) is None, number
    assert len(carl._unproven) == 3


def test_a_pair_has_another_key_in_each_swarm() -> None:
    """Else who was in one swarm with two peers could read on when they are in another."""
    said = []
    for key in (KEY, NEW):
        anne, bert = sealing_of(ANNE, key), sealing_of(BERT, key)
        assert anne.open(sealed(bert, b"hello", None)) is not None
        said.append(sealed(anne, bytes(32), BERT.id)[BODY_AT:-16])
    assert said[0] != said[1]
