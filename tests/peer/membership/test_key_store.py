"""The keys of a directory, from one run to the next."""

from pathlib import Path

import pytest

from kadcrawl.errors import ConfigError, StartError
from kadcrawl.members.key_file import write_secret
from kadcrawl.members.keyring import OVERLAP_S, Keyring
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.membership import key_store as key_store_module
from kadcrawl.peer.membership.key_store import REPLACED_MAX, KeyStore

FIRST, SECOND, THIRD = (SwarmKey(bytes((number,)) * 32) for number in (1, 2, 3))
NOW = 1_800_000_000.0


def changed(key_store: KeyStore, given: SwarmKey, to: SwarmKey) -> Keyring:
    keyring = key_store.keyring(given, NOW).changed(to, NOW)
    key_store.keep(keyring)
    return keyring


def test_a_key_that_was_replaced_counts_as_the_one_after_it(tmp_path: Path) -> None:
    safe = KeyStore(tmp_path)
    keyring = changed(safe, FIRST, SECOND)
    for given in (FIRST, SECOND):
        assert safe.keyring(given, NOW + 1) == keyring
    later = NOW + OVERLAP_S + 1
    safe.keep(keyring.at(later))
    for given in (FIRST, SECOND):
        assert safe.keyring(given, later) == Keyring(SECOND)
    changed(safe, FIRST, THIRD)
    for given in (FIRST, SECOND, THIRD):
        assert safe.keyring(given, later).key == THIRD


def test_a_key_can_be_changed_back(tmp_path: Path) -> None:
    safe = KeyStore(tmp_path)
    changed(safe, FIRST, SECOND)
    changed(safe, SECOND, FIRST)
    for given in (FIRST, SECOND):
        assert safe.keyring(given, NOW).key == FIRST


def test_a_change_that_was_cut_off_between_two_files_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    safe = KeyStore(tmp_path)
    safe.keep(Keyring(FIRST))

    def write(path: Path, secret: bytes) -> None:
        if path.name == "swarm.key":
            raise StartError("the disk is full")
        write_secret(path, secret)

    with monkeypatch.context() as patch:
        patch.setattr(key_store_module, "write_secret", write)
        with pytest.raises(StartError):
            changed(safe, FIRST, SECOND)
    assert (tmp_path / "swarm.key.former").exists()
    assert safe.keyring(FIRST, NOW) == Keyring(FIRST)
    assert changed(safe, FIRST, SECOND) == Keyring(SECOND, FIRST, NOW + OVERLAP_S)


def test_a_change_this_peer_had_no_part_in_loses_no_key(tmp_path: Path) -> None:
    safe = KeyStore(tmp_path)
    keyring = changed(safe, FIRST, SECOND)
    assert safe.keyring(THIRD, NOW) == Keyring(THIRD)
    assert safe.keyring(FIRST, NOW) == keyring, "only asked, not kept"
    safe.keep(Keyring(THIRD))
    for given in (FIRST, SECOND, THIRD):
        assert safe.keyring(given, NOW) == Keyring(THIRD)
    assert {"swarm.key", "swarm.key.replaced", "swarm.key.before"} == {path.name for path in tmp_path.iterdir()}
    assert SECOND.text == (tmp_path / "swarm.key.before").read_text().strip()


@pytest.mark.parametrize("left", ["", "00", "0" * 62, "x" * 64, "é" * 64])
def test_what_is_left_of_a_key_is_said_to_be_damaged_with_what_to_do(tmp_path: Path, left: str) -> None:
    safe = KeyStore(tmp_path)
    for name in ("swarm.key", "peer.key"):
        write_secret(tmp_path / name, left.encode())
    with pytest.raises(ConfigError, match=r"swarm\.key is damaged: copy it from another peer of the swarm$"):
        safe.keyring(FIRST, NOW)
    with pytest.raises(ConfigError, match=r"peer\.key is damaged: delete it, and this directory gets a new peer"):
        safe.peer_key()


def test_any_number_of_changes_is_kept_in_little(tmp_path: Path) -> None:
    safe = KeyStore(tmp_path)
    last = FIRST
    for number in range(REPLACED_MAX + 10):
        key = SwarmKey(b"%32d" % number)
        last = changed(safe, last, key).key
    assert safe.keyring(SwarmKey(b"%32d" % 20), NOW).key == last
    assert len((tmp_path / "swarm.key.replaced").read_text().split()) == REPLACED_MAX
