"""Test that names are resolved on demand, and no more once the resolver is closed."""

import pytest

from kadcrawl.crawl.fetch.late_resolver import LateResolver


async def test_a_resolver_that_is_closed_resolves_no_more() -> None:
    resolver = LateResolver()
    assert "127.0.0.1" == (await resolver.resolve("127.0.0.1"))[0]["host"]
    await resolver.close()
    with pytest.raises(OSError, match="closed"):
        await resolver.resolve("127.0.0.1")


async def test_a_resolver_without_names_is_closed_as_well() -> None:
    resolver = LateResolver()
    await resolver.close()
    with pytest.raises(OSError, match="closed"):
        await resolver.resolve("127.0.0.1")
