"""The states of a peer: every state has words, and the words are those that users read."""

import pytest

from kadcrawl.link.wire.peer_state import BLOCKED, GONE, STATE_TEXTS, PeerState, state_text


def test_every_state_has_words() -> None:
    assert set(PeerState) == STATE_TEXTS.keys()
    assert not BLOCKED & GONE


@pytest.mark.parametrize(
    ("state", "refused_by", "hosted_leaf", "text"),
    [
        (PeerState.DISK_FULL, 0, False, "paused: disk full"),
        (PeerState.NO_FILES, 0, False, "paused: too many open files"),
        (PeerState.REFUSED, 1, False, "refused by 1 known peer: key changed?"),
        (PeerState.REFUSED, 2, False, "refused by 2 known peers: key changed?"),
        (PeerState.REFUSED_BY_ALL, 0, True, "leaf: refused by all: key changed?"),
        (PeerState.LEFT, 0, True, "leaf: left"),
    ],
)
def test_a_person_reads_a_state_in_words(state: PeerState, refused_by: int, hosted_leaf: bool, text: str) -> None:
    assert text == state_text(state, refused_by, hosted_leaf=hosted_leaf)
