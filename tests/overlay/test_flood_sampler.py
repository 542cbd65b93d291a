"""Strangers in masses: how many are looked at, and which the kernel lets through."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kadcrawl.overlay.flood_sampler import CALM_FACTOR, NON_MEMBERS_PER_SECOND_MAX as MAX, ONE_IN_MAX, FloodSampler
from kadcrawl.system.packet_filter import FILTER_ADDRESSES_MAX, attach_packet_filter

LABELS = (b"abcd", b"efgh")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this filter")


def sampled_after(*rates: float) -> list[int]:
    """Return the sampling divisor after each second with this number of non-members looked at."""
    flood, strangers, found = FloodSampler(), 0.0, []
    flood.sample(0, 0.0)
    for second, rate in enumerate(rates, 1):
        strangers += rate
        before = flood.one_in
        assert flood.sample(int(strangers), float(second)) == (max(before, flood.one_in) > 1)
        found.append(flood.one_in)
    return found


@pytest.mark.parametrize(
    ("rates", "shares"),
    [
        ([MAX] * 3, [1, 1, 1]),
        ([MAX + 1, MAX / 2], [2, 2]),
        ([10 * MAX, MAX * 10 / 16], [16, 16]),
        ([10**12], [ONE_IN_MAX]),
        ([8 * MAX, 0, 0, 0, 0], [8, 4, 2, 1, 1]),
        (
            [
                2 * MAX,
                MAX / CALM_FACTOR,
                MAX / CALM_FACTOR - 1,
            ],
            [2, 2, 1],
        ),
    ],
    ids=["as many as may", "one more", "ten times", "no end", "it is over", "calm enough"],
)
def test_no_more_are_looked_at_than_may(rates: list[float], shares: list[int]) -> None:
    assert sampled_after(*rates) == shares


def test_a_steady_flood_is_let_through_in_one_share() -> None:
    flood, strangers = FloodSampler(), 0
    flood.sample(0, 0.0)
    shares = []
    for second in range(1, 20):
        strangers += 900_000 // flood.one_in
        flood.sample(strangers, float(second))
        shares.append(flood.one_in)
    assert {64} == set(shares)


def test_two_looks_in_one_instant_change_nothing() -> None:
    flood = FloodSampler()
    assert not flood.sample(10**9, 1.0)
    assert not flood.sample(2 * 10**9, 1.0)
    assert flood.one_in == 1


class Sockets:
    """A receiving socket, and any number of sending sockets."""

    def __init__(self, stack: ExitStack, family: int) -> None:
        self.host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        self._stack, self._family = stack, family
        self._receiver = self.sender()
        self._receiver.setblocking(False)
        self.descriptor = self._receiver.fileno()

    def sender(self) -> socket.socket:
        udp = self._stack.enter_context(socket.socket(self._family, socket.SOCK_DGRAM))
        udp.bind((self.host, 0))
        return udp

    def arrive(self, sender: socket.socket, datagram: bytes, count: int) -> int:
        """Send the datagram this often. Return how many arrive."""
        arrived = 0
        for _ in range(count):
            sender.sendto(datagram, self._receiver.getsockname())
            try:
                arrived += self._receiver.recv(2000) == datagram
            except BlockingIOError:
                pass
        return arrived


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6], ids=["IPv4", "IPv6"])
def sockets(request: pytest.FixtureRequest) -> Iterator[Sockets]:
    with ExitStack() as stack:
        try:
            sockets = Sockets(stack, request.param)
        except OSError:
            pytest.skip("this machine has no such loopback")
        yield sockets


@linux
def test_what_begins_as_no_members_do_does_not_arrive(sockets: Sockets) -> None:
    sender = sockets.sender()
    assert attach_packet_filter(sockets.descriptor, LABELS)
    for datagram, expected in ((b"abcdX", 9), (b"efgh", 9), (b"abceX", 0), (b"abc", 0), (b"", 0), (b"Xabcd", 0)):
        assert expected == sockets.arrive(sender, datagram, 9), datagram
    assert attach_packet_filter(sockets.descriptor, LABELS[:1])
    assert [9, 0] == [sockets.arrive(sender, label, 9) for label in LABELS]


@linux
def test_in_a_flood_known_peers_are_heard_and_of_others_a_share(sockets: Sockets) -> None:
    known, other = sockets.sender(), sockets.sender()
    host, port = known.getsockname()[:2]
    others = [(host, number) for number in range(1, FILTER_ADDRESSES_MAX)]
    assert attach_packet_filter(sockets.descriptor, LABELS, 4, [*others, (host, port)])
    assert 4000 == sockets.arrive(known, b"abcd", 4000)
    assert 800 < sockets.arrive(other, b"efgh", 4000) < 1200  # One in 10**12 runs is not so.
    assert 0 == sockets.arrive(known, b"abce", 100)
    assert attach_packet_filter(sockets.descriptor, LABELS, 4, [*others, (host, 0), (host, port)])  # One too many.
    assert 0 < sockets.arrive(known, b"abcd", 100) < 100
    assert attach_packet_filter(sockets.descriptor, LABELS)
    assert 100 == sockets.arrive(other, b"abcd", 100)
