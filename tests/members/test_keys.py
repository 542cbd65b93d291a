"""Keys in text and files, the hour in which two are good, and the window of numbers."""

import os
from hashlib import sha256
from pathlib import Path
from threading import Timer

import pytest
from hypothesis import given, strategies as st

from kadcrawl.errors import ConfigError, StartError
from kadcrawl.members.key_file import read_key, read_secret, write_secret
from kadcrawl.members.keyring import OVERLAP_S, Keyring
from kadcrawl.members.peer_key import PeerKey, _for_agreement, id_of
from kadcrawl.members.replay_window import WINDOW, ReplayWindow
from kadcrawl.members.swarm_key import SwarmKey

OLD, NEW = SwarmKey(b"o" * 32), SwarmKey(b"n" * 32)
PURPOSES = (b"label", b"name", b"authority", b"check", b"introductions", b"pairs")


def test_a_key_is_the_same_after_it_was_written() -> None:
    key = SwarmKey.generate()
    assert SwarmKey.from_text(f" {key.text}\n") == key != SwarmKey.generate()
    assert key.text not in repr(key)


@pytest.mark.parametrize("text", ["", "0" * 63, "0" * 65, "x" * 64, "é" * 64, "0" * 62 + " 0", "٠" * 64])
def test_what_is_no_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="hexadecimal") as refusal:
        SwarmKey.from_text(text)
    assert not text.strip() or text not in str(refusal.value)


def test_two_ends_share_a_secret_and_a_third_another() -> None:
    anne, bert, carl = (PeerKey.generate() for _ in range(3))
    assert anne.shared_with(bert.public) == bert.shared_with(anne.public) != carl.shared_with(anne.public)
    assert anne.id == id_of(anne.public) == PeerKey(anne.seed).id
    assert anne.seed.hex() not in repr(anne)


def test_the_map_between_the_curves_is_that_of_libsodium() -> None:
    """crypto_sign_ed25519_pk_to_curve25519: the example of libsodium's own tests (ed25519_convert)."""
    pair = PeerKey(bytes.fromhex("421151a459faeade3d247115f94aedae42318124095afabe4d1451a559faedee"))
    theirs = "f1814f0e8ff1043d8a44d25babff3cedcae6c22c3edaa48f857ae70de2baae50"
    assert theirs == pair._agreement.public_key().public_bytes_raw().hex()
    assert theirs == _for_agreement(pair.public).hex()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_secret_others_could_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "swarm.key"
    path.write_text(OLD.text)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=r"chmod 600 .*swarm\.key"):
        read_key(path)
    path.chmod(0o600)
    assert read_key(path) == OLD


def test_a_key_comes_by_a_pipe_as_well(tmp_path: Path) -> None:
    """The pipe is as in `--key-file <(...)`, where the other end may not have written yet."""
    reader, writer = os.pipe()

    def write() -> None:
        os.write(writer, OLD.text.encode())
        os.close(writer)

    late = Timer(0.05, write)
    late.start()
    assert OLD == read_key(Path(f"/dev/fd/{reader}"))
    late.join()
    os.close(reader)


def test_a_pipe_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="hexadecimal"):
        read_key(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="no regular file"):
        read_secret(tmp_path / "pipe")


def test_a_key_in_place_of_a_file_is_not_repeated() -> None:
    """The typed key is in the history of a shell, and should not be in a log of errors."""
    for name in (OLD.text, f"./{OLD.text}", OLD.text.upper()):
        with pytest.raises(ConfigError, match="that is a key where the name of a file is wanted") as refusal:
            read_key(Path(name))
        assert OLD.text[:8] not in str(refusal.value).lower()


def test_no_file_and_no_key_in_it_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_key(tmp_path / "none")
    with pytest.raises(ConfigError, match=r"cannot read|no file"):
        read_key(tmp_path)
    with pytest.raises(ConfigError, match="no regular file"):
        read_key(Path("/dev/null"))
    write_secret(tmp_path / "long", b"0" * 10_000)
    with pytest.raises(ConfigError, match="hexadecimal"):
        read_key(tmp_path / "long")


def test_a_secret_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    for secret in (b"one", b"two"):
        write_secret(path, secret)
        assert read_secret(path) == secret
        assert path.stat().st_mode & 0o777 == 0o600
    assert [path] == [*tmp_path.iterdir()]
    with pytest.raises(StartError, match="cannot write"):
        write_secret(tmp_path / "none" / "secret", b"one")


def test_for_an_hour_both_keys_are_good() -> None:
    ring = Keyring(OLD).changed(NEW, 1000.0)
    end = 1000.0 + OVERLAP_S
    assert ring.changed(NEW, 2000.0) is ring
    assert ring.keys == (NEW, OLD)
    assert ring.to_speak(1000.0) == (OLD, NEW)
    assert ring.to_speak(end - OVERLAP_S / 2) == (NEW, OLD)
    assert ring.at(end - 1) is ring
    assert ring.at(end) == Keyring(NEW)
    assert ring.to_speak(end) == (NEW,)
    assert Keyring(NEW).to_speak(0.0) == Keyring(NEW).keys == (NEW,)


@given(st.lists(st.integers(0, 3 * WINDOW), max_size=200))
def test_a_window_takes_each_number_once_unless_it_is_too_old(numbers: list[int]) -> None:
    window = ReplayWindow()
    taken: set[int] = set()
    for number in numbers:
        fresh = number not in taken and (not taken or number > max(taken) - WINDOW)
        assert window.is_new(number) == fresh
        if fresh:
            window.add(number)
            taken.add(number)


def test_a_jump_by_more_than_the_window_forgets_what_was_before() -> None:
    window = ReplayWindow()
    for number in (*range(10), 2**64 - 1):
        assert window.is_new(number)
        window.add(number)
    assert not window.is_new(9)
    assert not window.is_new(2**64 - 1)
    assert window.is_new(2**64 - 2)


def test_an_id_is_the_first_160_bits_of_the_hash_of_the_public_key() -> None:
    """The ID is in directories and in the tables of peers: another rule would make each peer another peer."""
    key = PeerKey(bytes(range(32)))
    assert "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8" == key.public.hex()
    assert "56475aa75463474c0285df5dbf2bcab73da65135" == key.id.hex() == sha256(key.public).hexdigest()[:40]


def test_what_is_derived_of_a_key_tells_nothing_of_it_nor_of_each_other() -> None:
    secret = bytes(range(32))
    key = SwarmKey(secret)
    derived = [key.derive(purpose) for purpose in PURPOSES]
    assert len(PURPOSES) == len(set(derived))
    for one in (key.label, bytes.fromhex(key.name.removeprefix("k")), *derived):
        assert not any(one[at : at + 4] in secret for at in range(len(one) - 3))


def test_a_new_key_is_random_in_all_its_bytes() -> None:
    keys = [bytes.fromhex(SwarmKey.generate().text) for _ in range(20)]
    assert all(len({key[at] for key in keys}) > 5 for at in range(32))  # One in 10**20 runs is not so.


def test_two_keys_are_good_for_an_hour_and_no_longer() -> None:
    """README and SECURITY.md name the hour. A peer that is to be left out stays in the swarm for that long."""
    assert 3600.0 == OVERLAP_S
