"""The cells of the swarms that `SyncSwarm` simulates: one site in each."""

from kadcrawl.keys import Cell, Key, cell_of, site_hash, url_key

BITS = 4
CELLS = [Cell(cell) for cell in range(1 << BITS)]


def _sites() -> dict[Cell, str]:
    sites: dict[Cell, str] = {}
    number = 0
    while len(sites) < len(CELLS):
        site = f"s{number}.example"
        sites.setdefault(cell_of(Key(site_hash(site) + bytes(8)), BITS), site)
        number += 1
    return sites


SITES = _sites()
"""One site for each cell."""


def url(cell: Cell, number: int) -> str:
    return f"http://{SITES[cell]}/{number}"


def key(cell: Cell, number: int) -> Key:
    return url_key(site_hash(SITES[cell]), url(cell, number))
