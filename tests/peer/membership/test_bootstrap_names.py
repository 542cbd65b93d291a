"""Test the addresses behind bootstrap names: literals, hosts with several addresses, and SRV records."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiodns import DNSResolver

from kadcrawl.errors import UnansweredError
from kadcrawl.peer.membership.bootstrap_names import ADDRESSES_MAX, Address, addresses_of, srv_targets

NAME = "_kadcrawl._tcp.example.test"
SRV, IN = 33, 1


def dns_name(text: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


class NameServer(asyncio.DatagramProtocol):
    """A DNS server that has one SRV record set, and no other name."""

    def __init__(self, records: Sequence[tuple[int, int, int, str]]) -> None:
        self.records = records
        self.transport: asyncio.DatagramTransport

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.index(b"\0", 12) + 5
        question = data[12:end]
        known = question == dns_name(NAME) + struct.pack(">HH", SRV, IN)
        answers = self.records if known else ()
        packed = b"".join(
            b"\xc0\x0c"
            + struct.pack(">HHIH", SRV, IN, 1, 6 + len(dns_name(target)))
            + struct.pack(">HHH", *numbers)
            + dns_name(target)
            for *numbers, target in answers
        )
        flags = 0x8180 if known else 0x8183
        head = data[:2] + struct.pack(">HHHHH", flags, 1, len(answers), 0, 0)
        self.transport.sendto(head + question + packed, addr)


@asynccontextmanager
async def name_server(*records: tuple[int, int, int, str]) -> AsyncIterator[DNSResolver]:
    """Run a server of these SRV records (priority, weight, port, target), and yield a resolver that asks it."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: NameServer(records), ("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    yield DNSResolver(nameservers=["127.0.0.1"], udp_port=port, tcp_port=port, timeout=20.0, tries=2)
    transport.close()


def answers(monkeypatch: pytest.MonkeyPatch, table: dict[str, Sequence[str]]) -> list[str]:
    """Let the loop's resolver answer from a table. Return the names it is asked for from then on."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, *, family: int = 0, **_: Any) -> list[Any]:
        asked.append(host)
        found = [
            (kind, socket.SOCK_DGRAM, 17, "", (address, port))
            for address in table.get(host, ())
            if (kind := socket.AF_INET6 if ":" in address else socket.AF_INET) in (family, family or kind)
        ]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo, raising=False)
    return asked


async def test_an_address_is_used_as_it_is_and_a_name_has_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, {"peers.test": ["10.0.0.1", "10.0.0.2", "fd00::1"]})
    bootstrap = [("10.0.0.2", 4160), ("peers.test", 4160)]
    assert [("10.0.0.2", 4160), ("10.0.0.1", 4160)] == await addresses_of(bootstrap, 4)
    assert [("fd00::1", 4160)] == await addresses_of([("peers.test", 4160)], 6)
    assert 3 == len(await addresses_of([("peers.test", 4160)], None))
    assert ["peers.test"] * 3 == asked, "names are asked each time, as their peers move"


async def test_a_name_without_addresses_is_left_out_and_said_if_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers(monkeypatch, {"six.test": ["fd00::1"]})
    assert [("10.0.0.1", 1)] == await addresses_of([("gone.test", 4160), ("10.0.0.1", 1)], 4)
    with pytest.raises(UnansweredError, match=r"no IPv4 address of gone\.test, six\.test"):
        await addresses_of([("gone.test", 4160), ("six.test", 4160)], 4)


async def test_addresses_that_no_single_host_answers_from_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {"odd.test": ["0.0.0.0", "224.0.0.1", "10.0.0.9"]})
    assert [("10.0.0.9", 4160)] == await addresses_of([("odd.test", 4160)], 4)


async def test_a_name_with_a_thousand_addresses_costs_a_bounded_try(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {"many.test": [f"10.0.{n // 256}.{n % 256}" for n in range(1000)]})
    assert ADDRESSES_MAX == len(await addresses_of([("many.test", 4160)], 4))


async def test_an_srv_record_tells_hosts_and_ports_by_priority_and_weight() -> None:
    records = [(20, 0, 4162, "c.test"), (10, 1, 4160, "a.test"), (10, 9, 4161, "b.test")]
    async with name_server(*records) as resolver:
        assert [("b.test", 4161), ("a.test", 4160), ("c.test", 4162)] == await srv_targets(NAME, resolver)


async def test_an_srv_record_that_says_there_is_no_service_names_no_host() -> None:
    async with name_server((0, 0, 0, ".")) as resolver:
        assert [] == await srv_targets(NAME, resolver)


async def test_a_missing_srv_record_is_an_error_of_the_name() -> None:
    async with name_server() as resolver:
        with pytest.raises(OSError, match="not found"):
            await srv_targets("_none._tcp.example.test", resolver)


async def test_the_hosts_of_an_srv_record_are_resolved_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {"a.test": ["10.0.0.1"], "b.test": ["10.0.0.2"]})
    targets: Sequence[Address] = [("a.test", 4161), ("gone.test", 1), ("b.test", 4162)]

    async def lookup(name: str) -> Sequence[Address]:
        assert NAME == name
        return targets

    assert [("10.0.0.1", 4161), ("10.0.0.2", 4162)] == await addresses_of([(NAME, 0)], 4, lookup)
    targets = targets[1:2]
    with pytest.raises(UnansweredError, match="_kadcrawl"):
        await addresses_of([(NAME, 0)], 4, lookup)
