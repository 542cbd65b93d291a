"""The floors of kadcrawl, as ARCHITECTURE.md draws them: a room imports rooms of lower floors.

Rooms of one floor stand side by side and do not import each other, but for the arrows of `SIDEWAYS`: each goes one
way only, so the rooms have an order. `kadcrawl/__init__.py` and `kadcrawl/__main__.py` are the front door, above all.
"""

from typing import Final

from scripts.house.source import PACKAGE, room_of

FLOORS: Final = (
    (PACKAGE,),
    ("cli",),
    ("leaf", "peer"),
    ("lending", "sinks", "web"),
    ("replication",),
    ("crawl",),
    ("overlay", "store", "link"),
    ("settings", "members", "balance"),
    ("urls", "keys", "errors", "version", "system"),
)
SIDEWAYS: Final = frozenset(
    {
        ("leaf", "peer"),  # A leaf is a peer without an overlay; peer/__init__ no longer exports it.
        ("overlay", "link"),  # The overlay speaks the wire's messages.
        ("store", "link"),  # Slices of expiring filters are stored as they are sent.
        ("settings", "members"),  # A config holds the swarm's key.
        ("keys", "errors"),
        ("urls", "errors"),
        ("errors", "system"),  # An error message is made printable.
    }
)
_FLOOR: Final = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def is_room(room: str) -> bool:
    """Tell whether ARCHITECTURE.md has this room."""
    return room in _FLOOR


def may_import(importer: str, imported: str) -> bool:
    """Tell whether a file may import another. Both are paths or rooms.

    A room that ARCHITECTURE.md lacks may import nothing but itself."""
    above, below = (room_of(name) if "/" in name else name for name in (importer, imported))
    if above == below:
        return True
    if not (is_room(above) and is_room(below)):
        return False
    return _FLOOR[above] < _FLOOR[below] or (above, below) in SIDEWAYS
