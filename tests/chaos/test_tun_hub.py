"""Test the hub between network namespaces: its decisions, and two machines that really talk through the hub."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from subprocess import CalledProcessError

import pytest

from scripts.chaos import __main__ as chaos
from scripts.chaos.namespaces import Namespace, remove_stale, stale
from scripts.chaos.tun_hub import Faults, Hub, PacketConditions

ONE, TWO = "10.77.0.1", "10.77.0.2"


# --- decisions ----------------------------------------------------------------------------------------------------


def test_without_faults_every_packet_arrives_once_and_at_once() -> None:
    faults = Faults(Random(1))
    assert [[0.0]] * 100 == [faults.fate(ONE, TWO) for _ in range(100)]
    assert (100, 0, 0, 0, 0) == (
        faults.counts.packets,
        faults.counts.lost,
        faults.counts.cut,
        faults.counts.doubled,
        faults.counts.refused,
    )


def test_packets_are_late_lost_and_doubled_as_often_as_it_says() -> None:
    faults = Faults(Random(1))
    faults.conditions = PacketConditions(delay_s=0.06, jitter_s=0.02, loss=0.1, duplication=0.05)
    fates = [faults.fate(ONE, TWO) for _ in range(10_000)]
    delays = [delay_s for fate in fates for delay_s in fate]
    assert 0.04 <= min(delays) < 0.041
    assert 0.079 < max(delays) <= 0.08
    assert pytest.approx(0.06, abs=0.001) == sum(delays) / len(delays)
    assert 0.09 < fates.count([]) / 10_000 < 0.11
    assert fates.count([]) == faults.counts.lost
    twice = [fate for fate in fates if len(fate) == 2]
    assert 0.04 < len(twice) / 9_000 < 0.06
    assert len(twice) == faults.counts.doubled
    assert any(first != second for first, second in twice), "the copies have delays of their own"


def test_the_same_seed_has_the_same_fates() -> None:
    bad = PacketConditions(delay_s=0.06, jitter_s=0.02, loss=0.1, duplication=0.05)
    same, again, other = Faults(Random(1)), Faults(Random(1)), Faults(Random(2))
    same.conditions = again.conditions = other.conditions = bad
    fates = [same.fate(ONE, TWO) for _ in range(50)]
    assert fates == [again.fate(ONE, TWO) for _ in range(50)]
    assert fates != [other.fate(ONE, TWO) for _ in range(50)]


def test_a_cut_is_of_one_direction_until_it_is_healed() -> None:
    faults = Faults(Random(1))
    faults.cut([ONE], iter([TWO, "10.77.0.3"]))
    assert [] == faults.fate(ONE, TWO) == faults.fate(ONE, "10.77.0.3")
    assert [0.0] == faults.fate(TWO, ONE) == faults.fate(ONE, "10.77.0.4")
    faults.heal()
    assert [0.0] == faults.fate(ONE, TWO)
    assert (5, 2) == (faults.counts.packets, faults.counts.cut)


@pytest.mark.parametrize(
    "wrong",
    [{"jitter_s": 0.1}, {"delay_s": 0.1, "jitter_s": -0.1}, {"loss": 1.1}, {"loss": -0.1}, {"duplication": 2.0}],
)
def test_impossible_conditions_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        PacketConditions(**wrong)


def test_only_what_a_dead_process_made_here_is_stale() -> None:
    names = [
        "kadcrawl-7-1",
        "kadcrawl-7-12",
        "kadcrawl-8-1",
        "kadcrawl-7",
        "kadcrawl-7-x",
        "other-7-1",
        "xkadcrawl-7-1",
    ]
    assert ["kadcrawl-7-1", "kadcrawl-7-12"] == stale(names, lambda pid: pid == 8)


def test_where_it_cannot_be_the_command_says_why_and_is_content(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["chaos", "--network"])
    chaos.main()
    assert "skipped: network namespaces need root\n" == capsys.readouterr().out


def test_a_scenario_of_the_other_kind_is_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["chaos", "--only", "lossy"])
    with pytest.raises(SystemExit):
        chaos.main()
    assert "no scenario lossy; there are two_killed, " in capsys.readouterr().err


# --- real packets -------------------------------------------------------------------------------------------------


def ours() -> set[str]:
    """Return the namespaces this process has made."""
    return {path.name for path in Path("/run/netns").glob(f"kadcrawl-{os.getpid()}-*")}


@contextmanager
def udp(namespace: Namespace, address: str) -> Iterator[socket.socket]:
    with namespace.entered():
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with end:
        end.setblocking(False)
        end.bind((address, 0))
        yield end


async def arrives(sender: socket.socket, receiver: socket.socket, within_s: float) -> bool:
    """Return whether the receiver gets the datagram that the sender sends."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendto(sender, b"?", receiver.getsockname())
    try:
        async with asyncio.timeout(within_s):
            received, source = await loop.sock_recvfrom(receiver, 100)
    except TimeoutError:
        return False
    return (received, source) == (b"?", sender.getsockname())


@pytest.mark.usefixtures("namespaces")
async def test_two_machines_hear_each_other_until_cut_and_again_when_healed() -> None:
    async with Hub([[ONE], [TWO]], Random(1)) as hub:
        with udp(hub.namespaces[0], ONE) as one, udp(hub.namespaces[1], TWO) as two:
            assert await arrives(one, two, 10.0)
            assert await arrives(two, one, 10.0)
            hub.faults.cut([ONE], [TWO])
            assert not await arrives(one, two, 0.3)
            assert await arrives(two, one, 10.0)
            hub.faults.heal()
            assert await arrives(one, two, 10.0)
            assert (5, 1) == (hub.faults.counts.packets, hub.faults.counts.cut)


@pytest.mark.usefixtures("namespaces")
async def test_packets_come_twice_and_are_overtaken_by_those_that_are_less_late() -> None:
    loop = asyncio.get_running_loop()
    async with Hub([[ONE], [TWO]], Random(1)) as hub:
        with udp(hub.namespaces[0], ONE) as one, udp(hub.namespaces[1], TWO) as two:
            hub.faults.conditions = PacketConditions(delay_s=3.0, duplication=1.0)
            await loop.sock_sendto(one, b"late", two.getsockname())
            async with asyncio.timeout(60):
                while not hub.faults.counts.packets:
                    await asyncio.sleep(0.01)
                hub.faults.conditions = PacketConditions()
                await loop.sock_sendto(one, b"early", two.getsockname())
                assert [b"early", b"late", b"late"] == [(await loop.sock_recvfrom(two, 100))[0] for _ in range(3)]


@pytest.mark.usefixtures("namespaces")
async def test_a_stream_survives_loss_and_disorder() -> None:
    data = Random(1).randbytes(200_000)
    async with Hub([[ONE], [TWO]], Random(1)) as hub:
        hub.faults.conditions = PacketConditions(delay_s=0.005, jitter_s=0.005, loss=0.03, duplication=0.1)
        received = bytearray()
        over = asyncio.Event()

        async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            received.extend(await reader.read(-1))
            writer.close()
            over.set()

        with hub.namespaces[0].entered():
            listener = socket.create_server((ONE, 0))
        with hub.namespaces[1].entered():
            end = socket.socket()
        end.setblocking(False)
        async with asyncio.timeout(60.0), await asyncio.start_server(receive, sock=listener):
            await asyncio.get_running_loop().sock_connect(end, listener.getsockname())
            _, writer = await asyncio.open_connection(sock=end)
            writer.write(data)
            writer.write_eof()
            await over.wait()
            writer.close()
            await writer.wait_closed()
        assert data == bytes(received)
        assert hub.faults.counts.lost > 0


@pytest.mark.usefixtures("namespaces")
async def test_nothing_is_left_of_a_hub_whatever_happens_in_it() -> None:
    before = ours()

    async def fail_inside() -> None:
        async with Hub([[ONE], [TWO]], Random(1)):
            assert 2 == len(ours() - before)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail_inside()
    assert before == ours()
    with pytest.raises(CalledProcessError):
        async with Hub([[ONE], ["10.77.0.2.3"]], Random(1)):
            pass
    assert before == ours()


@pytest.mark.usefixtures("namespaces")
def test_what_a_killed_process_left_is_removed() -> None:
    with Namespace() as living:
        dead = Namespace()
        dead.name = "kadcrawl-4194305-1"  # Above the largest process id there is.
        dead.__enter__()
        remove_stale()
        names = {path.name for path in Path("/run/netns").iterdir()}
        assert living.name in names
        assert dead.name not in names
