"""Keys at the command line: made, handed over, refused if others can read them, changed; and going without, loudly."""

import asyncio
import os
import socket
import stat
import subprocess
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from kadcrawl.cli.app import main
from kadcrawl.cli.keys import KeyOptions, key_to_begin
from kadcrawl.errors import ConfigError
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import Ok, Rekey
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.key_file import write_secret
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.membership.key_store import KeyStore
from tests.support.sites.web import Web, tree
from tests.support.swarm.command import (
    KADCRAWL,
    LOOPBACK,
    Run,
    address_of,
    crawl,
    ended,
    finished,
    interrupted,
    kadcrawl,
    start,
)

LOOSE = SwarmKey(b"l" * 32)
NO_KEY = {"KADCRAWL_KEY": ""}


@asynccontextmanager
async def first_peer(data: Path, *options: str) -> AsyncIterator[tuple[Process, str]]:
    """Start a first peer without a key in its environment. Yield the peer and its first output."""
    process = await start("start", "--listen", "127.0.0.1:0", "--data", str(data), *options, env=NO_KEY)
    assert process.stderr is not None
    try:
        said = (await process.stderr.readuntil(b"others join with")) + await process.stderr.readline()
        yield process, said.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def make_directory(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def keygen(path: Path) -> SwarmKey:
    """Print a key and put it into a file only its owner can read."""
    run = await kadcrawl("keygen")
    assert run.code == 0
    path.write_text(run.out)
    path.chmod(0o600)
    return SwarmKey.from_text(run.out)


async def test_each_key_is_a_new_one(tmp_path: Path) -> None:
    assert await keygen(tmp_path / "one") != await keygen(tmp_path / "two")


def test_a_key_that_finds_no_room_is_said_to_be_lost() -> None:
    with open("/dev/full", "wb") as full:
        run = subprocess.run([KADCRAWL, "keygen"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (2, "kadcrawl: its output could not be written, as the disk it goes to is full\n") == (
        run.returncode,
        run.stderr,
    )


async def test_a_peer_makes_a_key_and_says_how_others_join(tmp_path: Path) -> None:
    async with first_peer(tmp_path / "one") as (process, said):
        key_file = tmp_path / "one" / "swarm.key"
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
        join = said.partition("kadcrawl join ")[2].split()
        assert join[:-1] == ["--bootstrap"]
        assert SwarmKey.from_text(key_file.read_text()).text not in said
        options = ["--data", str(tmp_path / "two"), "--listen", "127.0.0.1:0"]
        second = await start("join", *join, *options, env=NO_KEY)
        assert second.stderr is not None
        await second.stderr.readuntil(b"others join with")
        here = ["--data", str(tmp_path / "one")]
        status = await kadcrawl("status", *here, env=NO_KEY)
        assert (status.code, status.out.count("127.0.0.1:")) == (0, 2), "the directory knows address and key"
        address = join[-1]
        for options, environment, why in (
            ([], NO_KEY, "if its swarm has a key, give it: --data DIR"),
            (
                [],
                {"KADCRAWL_KEY": "0" * 64},
                "by the key in KADCRAWL_KEY of the environment: it goes by another swarm's key",
            ),
            ([], {"KADCRAWL_KEY": "nonsense"}, "KADCRAWL_KEY: that is no swarm's key"),
            (["--key-file", str(tmp_path / "none")], NO_KEY, "cannot read the key in"),
        ):
            run = await kadcrawl("status", "--peer", address, *options, env=environment)
            assert run.code == 2, run
            assert why in run.err
            assert "Traceback" not in run.err
        assert (await kadcrawl("stop", *here, env=NO_KEY)).code == 0
        assert [(await ended(one)).code for one in (process, second)] == [0, 0]


async def test_joining_without_the_key_says_where_it_is(tmp_path: Path) -> None:
    join = ["join", "--bootstrap", "127.0.0.1:9", "--listen", "127.0.0.1:0", "--data", str(tmp_path)]
    run = await kadcrawl(*join, env=NO_KEY)
    assert run.code == 2
    assert "--key-file FILE, or KADCRAWL_KEY" in run.err
    assert "--insecure" in run.err


async def test_a_key_others_can_read_is_refused(tmp_path: Path) -> None:
    await keygen(tmp_path / "swarm.key")
    (tmp_path / "swarm.key").chmod(0o644)
    run = await kadcrawl("start", "--data", str(tmp_path / "one"), "--key-file", str(tmp_path / "swarm.key"))
    assert run.code == 2
    assert f"chmod 600 {tmp_path / 'swarm.key'}" in run.err


async def test_without_a_key_it_is_loud_and_stays_on_this_machine(tmp_path: Path) -> None:
    async with first_peer(tmp_path / "one", "--insecure") as (process, said):
        assert "--insecure: nothing is encrypted" in said
        assert "kadcrawl join --insecure --data " in said
        status = await kadcrawl("status", "--data", str(tmp_path / "one"), env=NO_KEY)
        assert status.code == 0
        assert (await interrupted(process)).code == 11
    run = await kadcrawl("start", "--insecure", "--listen", "0.0.0.0:0", "--data", str(tmp_path / "two"))
    assert run.code == 2
    assert "loopback only" in run.err
    await keygen(tmp_path / "swarm.key")
    both = await kadcrawl("start", "--insecure", "--key-file", str(tmp_path / "swarm.key"), "--data", str(tmp_path))
    assert "leave out one of" in both.err


async def test_a_start_that_failed_is_no_swarm_without_a_key(tmp_path: Path) -> None:
    data = tmp_path / "one"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        run = await kadcrawl("start", "--insecure", "--data", str(data), "--listen", listen, env=NO_KEY)
    assert (run.code, "cannot listen on" in run.err, data.exists()) == (2, True, False), run
    for options, is_told in (([], False), (["--insecure"], False), ([], True)):
        if options:
            data = tmp_path / "two"  # This one does begin without a key.
        process = await start("start", "--listen", "127.0.0.1:0", "--data", str(data), *options, env=NO_KEY)
        assert process.stderr is not None
        said = await process.stderr.readuntil(b"others join with")
        assert (b"had no key; it gets one now" in said) == is_told, said
        assert (await interrupted(process)).code == 11


async def test_a_key_is_changed_while_the_peer_runs(tmp_path: Path) -> None:
    new = await keygen(tmp_path / "new.key")
    async with first_peer(tmp_path / "one") as (process, said):
        here = ["--data", str(tmp_path / "one")]
        old = (tmp_path / "one" / "swarm.key").read_text().strip()
        run = await kadcrawl("rekey", str(tmp_path / "new.key"), *here, env=NO_KEY)
        assert (run.code, run.out.count("the former")) == (0, 2), run
        assert "tell every other peer of the swarm by " in run.out
        assert (tmp_path / "one" / "swarm.key").read_text().strip() == new.text
        address = said.split()[-1]
        for key in (old, new.text):
            assert (await kadcrawl("status", "--peer", address, env={"KADCRAWL_KEY": key})).code == 0
        assert (await interrupted(process)).code == 11
        again = await start("start", "--listen", "127.0.0.1:0", *here, env=NO_KEY)
        assert again.stderr is not None
        await again.stderr.readuntil(b"others join with")
        address = await address_of(again)
        assert (await kadcrawl("status", "--peer", address, env={"KADCRAWL_KEY": old})).code == 0, "still for an hour"
        assert (await interrupted(again)).code == 11
    run = await kadcrawl("rekey", str(tmp_path / "new.key"), *here, env=NO_KEY)
    assert (run.code, "goes by that key already" in run.out) == (0, True), run
    await keygen(tmp_path / "third.key")
    KeyStore(tmp_path / "one").keep(Keyring(new))
    for where, why in (
        ("one", "so it keeps its key: start it with the new one"),
        ("nowhere", "is no directory of a peer with a key"),
    ):
        run = await kadcrawl("rekey", str(tmp_path / "third.key"), "--data", str(tmp_path / where), env=NO_KEY)
        assert (run.code, why in run.err) == (2, True), run


@pytest.mark.parametrize("before", [["--insecure"], []], ids=["from without a key", "with its key"])
async def test_a_local_crawl_has_a_key_of_its_own_and_goes_on_with_it(tmp_path: Path, before: list[str]) -> None:
    async with Web(2) as site:
        site.fallback = tree(40, 2)(site)
        command = crawl(tmp_path, site.url("/0"), peers=2)
        first = await kadcrawl(*command, *before, "--max-depth", "2", env=NO_KEY)
        assert first.code == 0, first
        some = len(finished(tmp_path))
        keys = {path.read_text() for path in tmp_path.glob("peer-*/swarm.key")}
        assert len(keys) == (0 if before else 1)
        second = await kadcrawl(*command, env=NO_KEY)
        assert second.code == 0, second
        assert ("had no key; it gets one now" in second.err, "had no key" in first.err) == (bool(before), False)
        assert keys <= {path.read_text() for path in tmp_path.glob("peer-*/swarm.key")}
        assert len({path.read_text() for path in tmp_path.glob("peer-*/swarm.key")}) == 1
        assert some <= len(finished(tmp_path))
        assert set(site.fetched.values()) == {1}
        assert LOOPBACK[1] not in first.err


async def test_a_new_key_is_told_to_the_peer_of_the_directory_and_to_nobody_else(tmp_path: Path) -> None:
    """Above all, the peer that is to be left out does not hear the new key.

    That peer has the former key and may listen at the address where the peer of the directory listened.
    """
    new, data = await keygen(tmp_path / "new.key"), tmp_path / "one"
    data.mkdir()
    former, peer_key = SwarmKey.generate(), PeerKey.generate()
    write_secret(data / "swarm.key", former.text.encode())
    write_secret(data / "peer.key", peer_key.seed.hex().encode())
    for kind, told in (("another member", False), ("nobody's", False), ("the peer", True)):
        member = peer_key if told else PeerKey.generate()
        ours = Credentials(Keyring(former), member, tmp_path, lambda: 0.0, 0)
        heard: list[bytes] = []

        async def rekey(message: Rekey, heard: list[bytes] = heard) -> Ok:
            heard.append(message.key)
            return Ok()

        server = LinkServer(1_000_000, ours if kind != "nobody's" else None)
        server.handle(Rekey, rekey)
        address = f"127.0.0.1:{await server.listen('127.0.0.1', 0)}"
        (data / "address").write_text(address)
        run = await kadcrawl("rekey", str(tmp_path / "new.key"), "--data", str(data), env=NO_KEY)
        assert (run.code, heard) == ((0, [bytes.fromhex(new.text)]) if told else (2, [])), (kind, run)
        await server.close()


async def test_a_third_key_within_the_hour_is_refused_unless_it_ends_the_first(tmp_path: Path) -> None:
    """A peer that was not told of the second key would be shut out without a word."""
    data = tmp_path / "one"
    for name in ("wrong", "right"):
        await keygen(tmp_path / f"{name}.key")

    async def rekey(name: str, *options: str) -> Run:
        return await kadcrawl("rekey", str(tmp_path / name), "--data", str(data), *options, env=NO_KEY)

    def kept() -> list[str]:
        return [(data / name).read_text().split()[0] for name in ("swarm.key", "swarm.key.former")]

    async with first_peer(data) as (process, said):
        first = (data / "swarm.key").read_text().strip()
        wrong, right = ((tmp_path / f"{name}.key").read_text().strip() for name in ("wrong", "right"))
        assert 0 == (await rekey("wrong.key")).code
        run = await rekey("right.key")
        assert (2, [wrong, first]) == (run.code, kept()), run
        for words in (
            "peers that have not been told",
            "--end-former",
            f"kadcrawl rekey {data}/swarm.key.former --data",
        ):
            assert words in run.err
        again = await rekey("wrong.key")
        assert (0, True) == (again.code, "goes by that key already, and until" in again.out), again
        back = await rekey("one/swarm.key.former")
        assert (0, [first, wrong]) == (back.code, kept()), back
        for key in (first, wrong):
            assert (await kadcrawl("status", "--peer", said.split()[-1], env={"KADCRAWL_KEY": key})).code == 0
        assert 2 == (await rekey("right.key")).code
        ended_former = await rekey("right.key", "--end-former")
        assert (0, [right, first]) == (ended_former.code, kept()), ended_former
        assert (await interrupted(process)).code == 11


async def test_of_a_leaf_it_is_said_how_it_gets_another_key(tmp_path: Path) -> None:
    await keygen(tmp_path / "new.key")
    data = make_directory(tmp_path / "leaf")
    KeyStore(data).keep(Keyring(LOOSE))
    KeyStore(data).keep_peer_key(PeerKey.generate())
    run = await kadcrawl("rekey", str(tmp_path / "new.key"), "--data", str(data), env=NO_KEY)
    assert run.code == 2, run
    assert "is of a leaf, which cannot be told: stop it, and start it again with the new key" in run.err


async def test_nothing_is_made_up_about_a_peer_that_did_not_answer(tmp_path: Path) -> None:
    """The peer writes the key down before it answers, so its directory may contain the facts of the lost answer."""
    new, data = await keygen(tmp_path / "new.key"), make_directory(tmp_path / "one")
    peer_key, safe = PeerKey.generate(), KeyStore(data)
    safe.keep(Keyring(LOOSE))
    safe.keep_peer_key(peer_key)
    server = LinkServer(1_000_000, Credentials(Keyring(LOOSE), peer_key, tmp_path, lambda: 0.0, 0))
    takes = False

    async def rekey(message: Rekey) -> Ok:
        if takes:
            safe.keep(Keyring(SwarmKey(message.key), LOOSE, 2e9))
        server.disconnect()
        await asyncio.sleep(60)
        return Ok()

    server.handle(Rekey, rekey)
    (data / "address").write_text(f"127.0.0.1:{await server.listen('127.0.0.1', 0)}")
    command = ["rekey", str(tmp_path / "new.key"), "--data", str(data)]
    run = await kadcrawl(*command, env=NO_KEY)
    assert (2, True, False) == (run.code, "may have taken the key or not" in run.err, "as before" in run.err), run
    takes = True
    run = await kadcrawl(*command, env=NO_KEY)
    assert (0, True) == (run.code, "goes by the new key" in run.out), run
    assert new == safe.swarm_key
    await server.close()


async def test_all_peers_of_a_local_crawl_are_told(tmp_path: Path) -> None:
    new = await keygen(tmp_path / "new.key")
    options = ["--key-file", str(tmp_path / "old.key")]
    await keygen(tmp_path / "old.key")
    async with (
        first_peer(tmp_path / "peer-1", *options) as (one, _),
        first_peer(tmp_path / "peer-2", *options) as (two, _),
    ):
        run = await kadcrawl("rekey", str(tmp_path / "new.key"), "--data", str(tmp_path), env=NO_KEY)
        assert (run.code, run.out.count("goes by the new key")) == (0, 2), run
        for name in ("peer-1", "peer-2"):
            assert (tmp_path / name / "swarm.key").read_text().strip() == new.text
        for process in (one, two):
            await interrupted(process)


@pytest.mark.parametrize("insecure", [True, False])
def test_no_process_started_from_here_gets_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, insecure: bool
) -> None:
    """Not even if another is used, or none."""
    key = SwarmKey.generate()
    write_secret(tmp_path / "key", key.text.encode())
    monkeypatch.setenv("KADCRAWL_KEY", SwarmKey.generate().text)
    assert key_to_begin(KeyOptions(None if insecure else tmp_path / "key", insecure), tmp_path) == (
        None if insecure else key
    )
    assert "KADCRAWL_KEY" not in os.environ


async def test_no_second_swarm_is_begun_in_the_directory_of_one(tmp_path: Path) -> None:
    data, other = tmp_path / "one", tmp_path / "other.key"
    here = ["--data", str(data), "--listen", "127.0.0.1:0"]
    async with first_peer(data) as (process, _):
        assert (await interrupted(process)).code == 11
    key = (data / "swarm.key").read_text()
    await keygen(other)
    run = await kadcrawl("start", *here, "--key-file", str(other), env=NO_KEY)
    assert (run.code, "is of a swarm with another key" in run.err) == (2, True), run
    async with first_peer(tmp_path / "two", "--key-file", str(other)) as (process, said):
        run = await kadcrawl("join", "--bootstrap", said.split()[-1], *here, env=NO_KEY)
        assert (run.code, "another swarm's key" in run.err) == (2, True), run
        joining = ["--bootstrap", said.split()[-1], "--listen", "127.0.0.1:0", "--data", str(tmp_path / "three")]
        (tmp_path / "wrong.key").write_text(key)
        (tmp_path / "wrong.key").chmod(0o600)
        run = await kadcrawl("join", *joining, "--key-file", str(tmp_path / "wrong.key"), env=NO_KEY)
        assert (run.code, "another swarm's key" in run.err) == (2, True), run
        assert not (tmp_path / "three" / "swarm.key").exists(), "it is not that swarm's"
        assert (await interrupted(process)).code == 11
    assert (data / "swarm.key").read_text() == key, "it was let in by none of them"
    (data / "swarm.key").unlink()
    run = await kadcrawl("start", *here, env=NO_KEY)
    assert (run.code, "has a key, and that is not there" in run.err) == (2, True), run


@pytest.mark.parametrize("command", ["status", "stop", "leave"])
async def test_a_directory_that_is_named_and_holds_no_peer_is_a_mistake(tmp_path: Path, command: str) -> None:
    run = await kadcrawl(command, "--data", str(tmp_path / "typo"), env={"KADCRAWL_KEY": SwarmKey.generate().text})
    assert (run.code, "--data names the directory of a peer" in run.err) == (2, True), run


def test_whoever_opened_the_file_before_the_key_was_in_it_does_not_read_it(tmp_path: Path) -> None:
    """The shell makes the file, and a process that may read the empty file could keep it open."""
    path, link = tmp_path / "swarm key", tmp_path / "link"
    link.symlink_to(path)
    path.touch(0o644)
    with path.open("rb") as held:
        keygen_into(link, "wb").check_returncode()
        assert b"" == held.read()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert SwarmKey.from_text(path.read_text())
    assert {path, link} == set(tmp_path.iterdir())


def test_a_file_only_its_owner_can_open_gets_the_key_after_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("kept\n")
    path.chmod(0o600)
    keygen_into(path, "ab").check_returncode()
    kept, key = path.read_text().splitlines()
    assert "kept" == kept
    assert SwarmKey.from_text(key)


@pytest.mark.parametrize("case", ["something in it", "another name", "no name"])
def test_a_key_is_not_put_where_others_may_read_it_and_nothing_is_lost(tmp_path: Path, case: str) -> None:
    path = tmp_path / "swarm.key"
    path.write_text("kept" if case == "something in it" else "")
    path.chmod(0o644)
    with path.open("ab") as file:
        if case == "another name":
            path.with_name("other").hardlink_to(path)
        elif case == "no name":
            path.unlink()
        run = subprocess.run([KADCRAWL, "keygen"], stdout=file, stderr=subprocess.PIPE, text=True)
        assert (2, True) == (run.returncode, "say umask 077 first" in run.stderr), run
        assert os.fstat(file.fileno()).st_size == (4 if case == "something in it" else 0)


def keygen_into(path: Path, mode: str) -> "subprocess.CompletedProcess[bytes]":
    with path.open(mode) as file:
        return subprocess.run([KADCRAWL, "keygen"], stdout=file)


def test_a_key_is_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of a machine sees those."""
    monkeypatch.delenv("KADCRAWL_KEY", raising=False)
    options = {option.name for command in main.commands.values() for option in command.params}
    assert {"key_file", "rekeyed"} == {name for name in options if name is not None and "key" in name}
    assert next(option for option in main.commands["join"].params if option.name == "rekeyed").is_flag  # type: ignore[attr-defined]


def test_a_key_comes_by_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(f"{LOOSE.text}\n".encode())))
    assert LOOSE == key_to_begin(KeyOptions(Path("-"), False), tmp_path)


@pytest.mark.parametrize("place", ["swarm.key", "peer-1/swarm.key"])
def test_a_damaged_key_is_to_be_copied_from_another_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.delenv("KADCRAWL_KEY", raising=False)
    (tmp_path / "peer-1").mkdir()
    write_secret(tmp_path / place, b"")
    with pytest.raises(ConfigError, match="is damaged: copy it from another peer of the swarm"):
        key_to_begin(KeyOptions(None, False), tmp_path)


async def test_a_replaced_key_is_reported_in_the_log_and_not_at_the_terminal(tmp_path: Path) -> None:
    former = await keygen(tmp_path / "former.key")
    KeyStore(make_directory(tmp_path / "one")).keep(Keyring(LOOSE, former))
    async with first_peer(tmp_path / "one", "--key-file", str(tmp_path / "former.key")) as (process, said):
        assert "swarm.key_replaced" not in said
        assert (await interrupted(process)).code == 11
    assert f"swarm.key_replaced given={former.name} used={LOOSE.name}" in (tmp_path / "one" / "peer.log").read_text()


async def test_nobody_at_a_name_is_told_apart_from_nobody_there(tmp_path: Path) -> None:
    join = ["join", "--listen", "127.0.0.1:0", "--data", str(tmp_path), "--bootstrap"]
    run = await kadcrawl(*join, "nobody.invalid:4160")
    said = "kadcrawl: cannot join: there is no IPv4 address of nobody.invalid; check the name given as --bootstrap\n"
    assert (2, said) == (run.code, run.err)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # And does not listen.
        run = await kadcrawl(*join, f"127.0.0.1:{taken.getsockname()[1]}")
    assert (2, True) == (run.code, "connection refused. Is a peer running there?\n" in run.err), run


@pytest.mark.parametrize("leaf", [[], ["--leaf"]], ids=["peer", "leaf"])
async def test_joining_without_a_key_is_loud(tmp_path: Path, leaf: list[str]) -> None:
    join = ["join", "--insecure", "--bootstrap", "127.0.0.1:9", "--data", str(tmp_path)]
    run = await kadcrawl(*join, *(leaf or ["--listen", "127.0.0.1:0"]), env=NO_KEY)
    assert (2, True) == (run.code, "--insecure: nothing is encrypted" in run.err), run


async def test_crawling_without_a_key_is_loud(tmp_path: Path) -> None:
    async with Web() as site:
        site.fallback = tree(1, 1)(site)
        run = await kadcrawl(*crawl(tmp_path, site.url("/0")), "--insecure", env=NO_KEY)
    assert (0, True) == (run.code, "--insecure: nothing is encrypted" in run.err), run
