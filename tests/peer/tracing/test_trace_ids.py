"""All peers derive the same trace from a URL, and choose the same URLs to show."""

import pytest

from kadcrawl.keys import Key
from kadcrawl.peer.tracing.trace_ids import TraceIdentifier

KEYS = [Key(number.to_bytes(20, "big")) for number in range(2000)]


def test_two_peers_derive_the_same_ids_and_two_crawls_others() -> None:
    one, two, other = (TraceIdentifier(name, 1.0) for name in ("docs", "docs", "news"))
    ids = [one.ids(key) for key in KEYS]
    assert ids == [two.ids(key) for key in KEYS]
    assert len({found.trace for found in ids if found is not None}) == len(KEYS)
    assert not {*ids} & {other.ids(key) for key in KEYS}


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_a_larger_share_has_the_urls_of_a_smaller_share(share: float) -> None:
    few, most = TraceIdentifier("docs", share / 2), TraceIdentifier("docs", share)
    shown = [key for key in KEYS if few.ids(key) is not None]
    assert 0 < len(shown) < share * len(KEYS)
    assert all(few.ids(key) == most.ids(key) for key in shown)


def test_ids_have_the_lengths_of_open_telemetry() -> None:
    for found in map(TraceIdentifier("docs", 1.0).ids, KEYS):
        assert found is not None
        assert 0 < found.trace < 1 << 128
        assert 0 < found.root < 1 << 64
