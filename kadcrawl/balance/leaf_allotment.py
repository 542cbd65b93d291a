"""How much of what a full peer could crawl by now it lends a leaf: an equal share, a block each of the largest sites.

P3's leaves draw their tasks from the super peer they hang on. Here that one crawls as well, so it counts itself in: of
all that is ready, and of what its leaves have in hand already, none of them is to have more than it keeps. Pure.
"""

from collections.abc import Sequence


def leaf_allotment(
    spare: Sequence[tuple[str, int]], *, leaves: int, in_hand: int, lent: int, room: int, block_urls: int, loans: int
) -> list[tuple[str, int]]:
    """Return (site, URLs) for each loan to give one leaf, the largest site first.

    `lendable`: (site, URLs ready) of each site it has no loan of; `leaves` hang here, this one included. It has
    `in_hand` URLs, all leaves together `lent`; it wants `room` more, in at most `loans` loans of `block_urls` each.
    """
    ready = sum(urls for _, urls in spare)
    left = min(room, (ready + lent) // (leaves + 1) - in_hand)
    given: list[tuple[str, int]] = []
    for site, urls in sorted(spare, key=lambda one: (-one[1], one[0])):
        count = min(urls, block_urls, left)
        if count <= 0 or len(given) == loans:
            break
        given.append((site, count))
        left -= count
    return given
