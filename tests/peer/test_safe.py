"""The keys of a directory, from one run to the next."""

from pathlib import Path

import pytest

from kadcrawl.members.keyring import OVERLAP_S, Keyring
from kadcrawl.peer.safe import REPLACED_MAX, Safe
from kadcrawl.swarm_key import SwarmKey

FIRST, SECOND, THIRD = (SwarmKey(bytes((number,)) * 32) for number in (1, 2, 3))
NOW = 1_800_000_000.0


def changed(safe: Safe, given: SwarmKey, to: SwarmKey) -> Keyring:
    keyring = safe.keyring(given, NOW).changed(to, NOW)
    safe.keep(keyring)
    return keyring


def test_a_key_that_was_replaced_counts_as_the_one_after_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    safe = Safe(tmp_path)
    keyring = changed(safe, FIRST, SECOND)
    for given in (FIRST, SECOND):
        assert safe.keyring(given, NOW + 1) == keyring
    assert [f"swarm.key_replaced given={FIRST.name} used={SECOND.name}"] == caplog.messages
    later = NOW + OVERLAP_S + 1
    safe.keep(keyring.at(later))
    for given in (FIRST, SECOND):
        assert safe.keyring(given, later) == Keyring(SECOND)
    changed(safe, FIRST, THIRD)
    for given in (FIRST, SECOND, THIRD):
        assert safe.keyring(given, later).key == THIRD


def test_a_key_can_be_changed_back(tmp_path: Path) -> None:
    safe = Safe(tmp_path)
    changed(safe, FIRST, SECOND)
    changed(safe, SECOND, FIRST)
    for given in (FIRST, SECOND):
        assert safe.keyring(given, NOW).key == FIRST


def test_another_swarms_key_is_a_new_beginning(tmp_path: Path) -> None:
    safe = Safe(tmp_path)
    keyring = changed(safe, FIRST, SECOND)
    assert safe.keyring(THIRD, NOW) == Keyring(THIRD)
    assert safe.keyring(FIRST, NOW) == keyring, "only asked, not kept"
    safe.keep(Keyring(THIRD))
    assert safe.keyring(FIRST, NOW) == Keyring(FIRST)
    assert [path.name for path in tmp_path.iterdir()] == ["swarm.key"]


def test_any_number_of_changes_is_kept_in_little(tmp_path: Path) -> None:
    safe = Safe(tmp_path)
    last = FIRST
    for number in range(REPLACED_MAX + 10):
        key = SwarmKey(b"%32d" % number)
        last = changed(safe, last, key).key
    assert safe.keyring(SwarmKey(b"%32d" % 20), NOW).key == last
    assert len((tmp_path / "swarm.key.replaced").read_text().split()) == REPLACED_MAX
