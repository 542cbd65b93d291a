"""A person hears at once of an address that may not be asked, and not of each."""

import logging

import pytest

from kadcrawl.crawl.fetch.address_guard import AddressRefused, Guard
from kadcrawl.crawl.fetch.refused_addresses import REFUSED_WARN_INTERVAL_S, RefusedAddresses, network_of


def test_the_first_address_is_told_at_once_and_others_seldom(caplog: pytest.LogCaptureFixture) -> None:
    refused = RefusedAddresses()
    with caplog.at_level(logging.WARNING):
        assert refused.take() is None
        refused.add("192.168.3.4", 100.0)
        warning = refused.take()
        assert warning is not None
        assert warning.startswith("192.168.3.4 is neither public nor allowed here")
        assert warning.endswith("and start again with --allow-network 192.168.0.0/16")
        assert refused.take() is None, "it was told"
        refused.add("10.0.0.1", 100.0 + REFUSED_WARN_INTERVAL_S - 1)
        assert refused.take() is None
        refused.add("10.0.0.1", 100.0 + REFUSED_WARN_INTERVAL_S)
        assert refused.take() is not None
    assert 2 == len(caplog.records)
    assert "address.refused address=192.168.3.4 allow_network=192.168.0.0/16" in caplog.text


@pytest.mark.parametrize(
    ("address", "network"),
    [("127.0.0.2", "127.0.0.0/8"), ("169.254.1.1", "169.254.1.1/32"), ("fd00::2%eth0", "fc00::/7"), ("::1", "::1/128")],
)
def test_the_network_to_allow_permits_the_address(address: str, network: str) -> None:
    assert network_of(address) == network
    assert Guard([network]).permits(address)


def test_the_guard_tells_what_it_refuses() -> None:
    told: list[str] = []
    guard = Guard(["10.0.0.0/8"], told.append)
    with pytest.raises(AddressRefused):
        guard.socket((2, 1, 6, "", ("127.0.0.1", 80)))
    guard.socket((2, 1, 6, "", ("10.0.0.1", 80))).close()
    assert told == ["127.0.0.1"]
