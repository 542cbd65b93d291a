"""Test that no request leaves for an address that is not public, in any form of the address."""

import errno
import socket

import pytest

from kadcrawl.crawl.fetch.address_guard import AddressRefused, Guard, is_public
from tests.support.cases import cases
from tests.support.sites.address_forms import NOT_PUBLIC

PUBLIC = """
1.1.1.1 8.8.8.8 9.9.9.9 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.1 192.0.1.1 192.88.98.1
192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 ::ffff:8.8.8.8 ::ffff:808:808
0:0:0:0:0:ffff:8.8.8.8 ::ffff:8.8.8.8%1 2001:200::1 2001:4860:4860::8888 2001:4860:4860::8888%eth0 2003::1
2400:cb00::1 2606:4700:4700::1111 2a00:1450::1
"""


NO_ADDRESS = """
localhost example.com 127.1 2130706433 0x7f000001 0177.0.0.1 127.0.0.1. 1.2.3 1.2.3.4.5 [::1] ::g 127.0.0.1:80
8.8.8.8/32
"""


@pytest.mark.parametrize("address", PUBLIC.split())
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)
    assert Guard().permits(address)


@cases("address", ["", " ", *NOT_PUBLIC.split(), *NO_ADDRESS.split()])
def test_every_other_form_is_not(address: str) -> None:
    assert not is_public(address)
    assert not Guard().permits(address)


@pytest.mark.parametrize(
    ("networks", "address", "expected"),
    [
        (["127.0.0.0/8"], "127.0.0.1", True),
        (["127.0.0.0/8"], "127.255.0.9", True),
        (["127.0.0.0/8"], "10.0.0.1", False),
        (["127.0.0.0/8"], "::1", False),
        (["127.0.0.0/8"], "::ffff:127.0.0.1", True),
        (["127.0.0.0/8"], "::ffff:10.0.0.1", False),
        (["127.0.0.0/8"], "::127.0.0.1", False),
        (["127.0.0.0/8"], "64:ff9b::127.0.0.1", False),
        (["127.0.0.0/8"], "localhost", False),
        (["127.0.0.1/32", "fe80::/10"], "fe80::1%eth0", True),
        (["127.0.0.1/32", "fe80::/10"], "127.0.0.2", False),
        (["::/0"], "::ffff:10.0.0.1", False),
        (["0.0.0.0/0"], "10.0.0.1", True),
    ],
)
def test_allowed_networks_are_permitted_and_nothing_beside_them(
    networks: list[str], address: str, expected: bool
) -> None:
    assert Guard(networks).permits(address) is expected


def test_a_malformed_network_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="host bits"):
        Guard(["127.0.0.1/8"])


def test_a_socket_is_made_for_a_permitted_address_only() -> None:
    def addr_info(address: str) -> tuple[int, int, int, str, tuple[str, int]]:
        return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 80))

    guard = Guard(["127.0.0.1/32"])
    with guard.socket(addr_info("127.0.0.1")) as made:
        assert made.family is socket.AF_INET
    with pytest.raises(AddressRefused) as refused:
        guard.socket(addr_info("127.0.0.2"))
    assert (refused.value.address, refused.value.errno) == ("127.0.0.2", errno.EACCES)
