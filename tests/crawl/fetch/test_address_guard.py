"""No request leaves for an address that is not public, whatever form it is written in."""

import errno
import socket

import pytest

from kadcrawl.crawl.fetch.address_guard import AddressRefused, Guard, is_public

PUBLIC = """
1.1.1.1 8.8.8.8 9.9.9.9 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.1 192.0.1.1 192.88.98.1
192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 ::ffff:8.8.8.8 ::ffff:808:808
0:0:0:0:0:ffff:8.8.8.8 ::ffff:8.8.8.8%1 2001:200::1 2001:4860:4860::8888 2001:4860:4860::8888%eth0 2003::1
2400:cb00::1 2606:4700:4700::1111 2a00:1450::1
"""

NOT_PUBLIC = """
0.0.0.0 0.1.2.3 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1
127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.9
192.0.0.170 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 224.0.0.1 232.1.1.1 239.255.255.250 240.0.0.1 255.255.255.255 :: ::1
0:0:0:0:0:0:0:1 ::1%lo ::127.0.0.1 ::8.8.8.8 ::a00:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1
::ffff:169.254.169.254 ::ffff:0.0.0.0 ::ffff:192.168.1.1%eth0 ::ffff:0:127.0.0.1 64:ff9b::7f00:1
64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 1::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1
2001:20::1 2001:1ff:ffff::1 2001:db8::1 2002:7f00:1:: 2002:808:808::1 3fff::1 4000::1 5f00::1 fc00::1
fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 fe80::1%25eth0 fec0::1 ff00::1 ff02::1 ff0e::1
"""

NO_ADDRESS = """
localhost example.com 127.1 2130706433 0x7f000001 0177.0.0.1 127.0.0.1. 1.2.3 1.2.3.4.5 [::1] ::g 127.0.0.1:80
8.8.8.8/32
"""


@pytest.mark.parametrize("address", PUBLIC.split())
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)
    assert Guard().permits(address)


@pytest.mark.parametrize("address", ["", " ", *NOT_PUBLIC.split(), *NO_ADDRESS.split()])
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
