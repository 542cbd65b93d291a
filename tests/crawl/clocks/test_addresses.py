"""The one address at which a host is asked."""

import pytest

from kadcrawl.crawl.clocks import addresses as module
from kadcrawl.crawl.clocks.addresses import Addresses


class Names:
    """Name servers."""

    def __init__(self, **hosts: list[str]) -> None:
        self.hosts = hosts
        self.asked = 0

    async def resolve(self, host: str) -> list[str]:
        self.asked += 1
        if host not in self.hosts:
            raise OSError(f"no such host: {host}")
        return self.hosts[host]


async def test_the_lowest_address_is_chosen_and_remembered() -> None:
    names = Names(a=["2001:db8::1", "192.0.2.10", "192.0.2.9"])
    addresses = Addresses(names.resolve)
    assert addresses.known("a") is None
    assert ["192.0.2.9"] * 2 == [await addresses.find("a"), await addresses.find("a")]
    assert 1 == names.asked


async def test_an_address_is_its_own() -> None:
    addresses = Addresses(Names().resolve)
    assert ["192.0.2.1", "2001:db8::1"] == [await addresses.find("192.0.2.1"), await addresses.find("[2001:db8::1]")]


async def test_after_a_failed_connection_the_next_address_is_chosen_until_it_is_named_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names(a=["192.0.2.1", "192.0.2.2"])
    addresses = Addresses(names.resolve)
    await addresses.find("a")
    addresses.missed("a", "192.0.2.1")
    addresses.missed("a", "192.0.2.1")
    assert "192.0.2.2" == addresses.known("a")
    monkeypatch.setattr(module, "DNS_TTL_S", 0.0)
    addresses._hosts["a"].until = 0.0
    assert "192.0.2.2" == await addresses.find("a")
    names.hosts["a"] = ["192.0.2.7", "192.0.2.1"]
    assert "192.0.2.1" == await addresses.find("a")


async def test_a_host_without_an_address_is_an_error_each_time() -> None:
    names = Names(a=[])
    addresses = Addresses(names.resolve)
    for host in ("a", "b", "b"):
        with pytest.raises(OSError, match=r"address|no such host"):
            await addresses.find(host)
    assert 3 == names.asked


async def test_hosts_that_are_remembered_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOSTS_MAX", 2)
    addresses = Addresses(Names(a=["192.0.2.1"], b=["192.0.2.2"], c=["192.0.2.3"]).resolve)
    for host in "abc":
        await addresses.find(host)
    assert [None, "192.0.2.2", "192.0.2.3"] == [addresses.known(host) for host in "abc"]
