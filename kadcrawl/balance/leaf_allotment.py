"""The share of a full peer's ready URLs that it lends a leaf: an equal share, in a block each of the largest sites.

Which sites a leaf may have is decided before (leaf_sites.py).

In P3, leaves get their tasks from their super peer. Here the full peer crawls as well, so it counts itself in: of all
ready URLs, and of the URLs that its leaves have on loan, no leaf has more than the peer keeps. Decisions only.
"""

from collections.abc import Sequence


def leaf_allotment(
    sites: Sequence[tuple[str, int]],
    *,
    ready: int,
    leaves: int,
    in_hand: int,
    lent: int,
    room: int,
    block_urls: int,
    loans: int,
) -> list[tuple[str, int]]:
    """Return (site, URLs) of each loan to offer one leaf, the largest site first.

    Args:
        sites: (site, ready URLs) of each site that the leaf may have.
        ready: ready URLs of all sites of which the leaf has no loan.
        leaves: the number of leaves of this peer, the leaf included.
        in_hand: URLs that the leaf has on loan.
        lent: URLs that all leaves of this peer have on loan.
        room: URLs that the leaf wants at most.
        block_urls: URLs per loan at most.
        loans: loans at most.
    """
    left = min(room, (ready + lent) // (leaves + 1) - in_hand)
    allotment: list[tuple[str, int]] = []
    for site, urls in sorted(sites, key=lambda site_urls: (-site_urls[1], site_urls[0])):
        count = min(urls, block_urls, left)
        if count <= 0 or len(allotment) == loans:
            break
        allotment.append((site, count))
        left -= count
    return allotment
