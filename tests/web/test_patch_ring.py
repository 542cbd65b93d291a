"""Test the ring of changes: what a viewer gets who comes back, and that it has a limit."""

from kadcrawl.web.patch_ring import PatchRing


def test_a_viewer_gets_the_changes_after_its_last() -> None:
    ring = PatchRing()
    for patch in (b"1", b"2", b"3"):
        ring.append(patch)
    assert [[b"1", b"2", b"3"], [b"3"], []] == [ring.since(number) for number in (0, 2, 3)]


def test_a_viewer_with_a_change_that_is_forgotten_or_never_was_gets_nothing() -> None:
    ring = PatchRing(patches_max=2)
    for patch in (b"1", b"2", b"3"):
        ring.append(patch)
    assert [None, [b"2", b"3"], None, None] == [ring.since(number) for number in (0, 1, 4, -1)]


def test_the_ring_keeps_no_more_bytes_than_its_limit() -> None:
    ring = PatchRing(bytes_max=10)
    for _ in range(5):
        ring.append(b"1234")
    assert (5, None, [b"1234", b"1234"]) == (ring.last, ring.since(2), ring.since(3))
    ring.append(b"x" * 11)
    assert (6, None, []) == (ring.last, ring.since(5), ring.since(6))
