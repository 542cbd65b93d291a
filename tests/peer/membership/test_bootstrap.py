"""A directory goes with one swarm: by another key it enters only where that swarm is shown, or said, to be."""

from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl import Config, Job, Leaf, Peer, StartError
from kadcrawl.cli.keys import KeyOptions, key_to_begin
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.overlay import Overlay
from kadcrawl.peer.membership.key_store import KeyStore
from tests.support.swarm.peers import MakePeer

KEY, OTHER_KEY, THIRD_KEY = SwarmKey(b"k" * 32), SwarmKey(b"o" * 32), SwarmKey(b"t" * 32)
HERE, THERE = "http://here.example/", "http://there.example/"


def keyed_config(data: Path, key: SwarmKey | None = KEY) -> Config:
    return Config(data=data, port=0, swarm_key=key)


def secrets(data: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in [*data.glob("*.key"), *data.glob("*.key.*")]}


async def secrets_left(data: Path, key: SwarmKey, *seeds: str, then: SwarmKey | None = None) -> dict[str, str]:
    """Let a swarm begin in this directory, change its key, and end. Return the secrets that are left."""
    async with Peer(keyed_config(data, key), Job(seeds=seeds)) as peer:
        await peer.begin(paused=True)
        if then is not None:
            peer.change_key(then)
    return secrets(data)


@pytest.mark.parametrize("rekeyed", [False, True])
@pytest.mark.parametrize("kind", [Peer, Leaf])
async def test_a_directory_of_another_swarm_stays_that_swarms(
    make_peer: MakePeer, tmp_path: Path, kind: type[Peer | Leaf], rekeyed: bool
) -> None:
    first = await make_peer("one", key=OTHER_KEY, seeds=(THERE,))
    data = tmp_path / "two"
    before = await secrets_left(data, THIRD_KEY, HERE, then=KEY)
    assert {"swarm.key", "swarm.key.former", "swarm.key.replaced", "peer.key"} == before.keys()
    with pytest.raises(StartError, match="is of another swarm, with other seeds"):
        async with kind(keyed_config(data, OTHER_KEY)) as member:
            await member.join([first.contact.address], rekeyed=rekeyed)
    assert before == secrets(data)
    async with Peer(keyed_config(data)) as peer:
        await peer.begin(paused=True)
        assert (HERE,) == peer.job.seeds
    assert (THERE,) == first.job.seeds


async def test_who_is_told_to_join_itself_comes_back_by_those_it_knew(make_peer: MakePeer, tmp_path: Path) -> None:
    """The case occurs where one command that names one of the peers starts all peers of a swarm."""
    first = await make_peer("one", key=KEY, seeds=(HERE,))
    data = tmp_path / "two"
    async with Peer(keyed_config(data)) as peer:
        await peer.join([first.contact.address])
        address = peer.contact.address
    async with Peer(replace(keyed_config(data), port=address[1])) as peer:
        await peer.join([address])
        assert [first.contact] == peer.overlay.contacts()


async def test_a_directory_stays_with_its_swarm_even_without_keys(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("one", seeds=(THERE,))
    data = tmp_path / "two"
    async with Peer(keyed_config(data, None), Job(seeds=(HERE,))) as peer:
        await peer.begin(paused=True)
    with pytest.raises(StartError, match="is of another swarm, with other seeds"):
        async with Peer(keyed_config(data, None)) as peer:
            await peer.join([first.contact.address])
    async with Peer(keyed_config(data, None)) as peer:
        await peer.begin(paused=True)
        assert (HERE,) == peer.job.seeds
    assert (THERE,) == first.job.seeds


async def test_who_was_away_while_the_key_was_changed_comes_back_by_the_new_one(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    """The known peer lets the returning peer in by the new key, and is the same peer as before."""
    first = await make_peer("one", key=KEY, seeds=(HERE,))
    data = tmp_path / "two"
    async with Peer(keyed_config(data)) as peer:
        await peer.join([first.contact.address])
    first.change_key(OTHER_KEY)
    async with Peer(keyed_config(data, OTHER_KEY)) as peer:
        await peer.join([first.contact.address])
        assert [first.contact] == peer.overlay.contacts()
    kept = secrets(data)
    assert (OTHER_KEY.text, KEY.text) == (kept["swarm.key"].strip(), kept["swarm.key.before"].strip())
    assert OTHER_KEY == KeyStore(data).keyring(KEY, 0.0).key, "what restarts it may go on giving it the key before"


async def test_a_changed_key_needs_a_person_if_no_known_peer_is_left(make_peer: MakePeer, tmp_path: Path) -> None:
    first = await make_peer("one", key=OTHER_KEY, seeds=(HERE,))
    data = tmp_path / "two"
    before = await secrets_left(data, KEY, HERE)
    with pytest.raises(StartError, match=r"no peer it knew lets it in by the key in FILE: .* say so by --rekeyed"):
        async with Peer(keyed_config(data, SwarmKey(b"o" * 32, "FILE"))) as peer:
            await peer.join([first.contact.address])
    assert before == secrets(data)
    async with Peer(keyed_config(data, OTHER_KEY)) as peer:
        await peer.join([first.contact.address], rekeyed=True)
    assert OTHER_KEY.text == secrets(data)["swarm.key"].strip()


async def test_a_key_in_place_of_one_that_is_gone_must_be_that_of_the_swarm(tmp_path: Path) -> None:
    data = tmp_path / "one"
    await secrets_left(data, KEY, HERE)
    (data / "swarm.key").unlink()
    with pytest.raises(StartError, match=r"its own is not there any more: copy swarm\.key from another peer"):
        async with Peer(keyed_config(data, OTHER_KEY)) as peer:
            await peer.begin()
    assert not (data / "swarm.key").exists()
    await secrets_left(data, KEY, HERE)
    assert KEY == KeyStore(data).swarm_key


@pytest.mark.parametrize("kind", [Peer, Leaf])
async def test_a_directory_that_entered_no_swarm_is_as_new(
    make_peer: MakePeer, tmp_path: Path, kind: type[Peer | Leaf], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KADCRAWL_KEY", raising=False)
    first = await make_peer(
        "one", key=KEY, seeds=(HERE,), max_bytes=500
    )  # So that a leaf is refused after it was let in.

    async def silent(*_: object) -> None:
        raise StartError("no peer answered")

    monkeypatch.setattr(Overlay, "join", silent)
    data = tmp_path / "two"
    for key in (OTHER_KEY, KEY):
        with pytest.raises(StartError):
            async with kind(keyed_config(data, key)) as member:
                await member.join([first.contact.address])
        assert {} == secrets(data)
    assert key_to_begin(KeyOptions(None, False), data) not in (KEY, OTHER_KEY, None)
    await secrets_left(data, THIRD_KEY, THERE)
    async with Peer(keyed_config(data, THIRD_KEY)) as peer:
        assert peer.journaled_job is not None
        assert (THERE,) == peer.journaled_job.seeds


async def test_a_peer_that_joins_itself_is_told_so(tmp_path: Path) -> None:
    for key in (KEY, None):
        async with Peer(keyed_config(tmp_path / str(key), key)) as peer:
            with pytest.raises(StartError, match="cannot join: the peer to join is this very peer"):
                await peer.join([peer.contact.address])


async def test_a_peer_whose_key_and_swarm_differ_is_told_so_in_both_directions(
    make_peer: MakePeer, tmp_path: Path
) -> None:
    keyed, insecure = await make_peer("one", key=KEY), await make_peer("two")
    for peer, key, why in (
        (keyed, None, r"\. If its swarm has a key, give it: --key-file FILE$"),
        (insecure, KEY, r"by the key \w+: it goes by none, as a peer that was begun with --insecure does"),
        (
            keyed,
            SwarmKey(b"o" * 32, "FILE"),
            r"by the key in FILE: it goes by another swarm's key, .* or it is no peer$",
        ),
    ):
        with pytest.raises(StartError, match=why) as refusal:
            async with Peer(keyed_config(tmp_path / "three", key)) as newcomer:
                await newcomer.join([peer.contact.address])
        assert "running there" not in str(refusal.value)
