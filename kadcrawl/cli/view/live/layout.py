"""The layout fits the live view into the columns and rows of a terminal: it leaves out whole things, in a set order.

No text is wrapped within a piece. Only the first column of a table may be cut, at its start, as the end of a host name
says to which domain it belongs.

Tests: tests/cli/view/live/test_layout.py
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

GAP = 2
"""Columns of the terminal between two columns of a table."""
ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column of a table, with its head."""

    head: str
    cells: Sequence[str]
    worth: int = 0
    """The column with the least worth is left out first. The first column always stays."""
    is_text: bool = False
    """The cells are texts, aligned at their start, and no numbers."""
    short_head: str = ""
    """The head of the first column if that is cut."""
    least: int | None = None
    """Columns of the terminal to which the first column may be cut. None if another column is rather left out."""

    @property
    def width(self) -> int:
        """Columns of the terminal that all of it takes."""
        return max(map(len, (self.head, *self.cells)))


def wrapped(pieces: Iterable[str], width: int, joint: str = ", ") -> list[str]:
    """Return the pieces on as many lines as they need, each piece whole unless it is wider than a line."""
    lines: list[str] = []
    end = joint.rstrip()
    for piece in pieces:
        if lines and len(lines[-1]) + len(joint) + len(piece) <= width:
            lines[-1] += joint + piece
            continue
        if lines and len(lines[-1]) + len(end) <= width:
            lines[-1] += end
        lines.append(cut_end(piece, width))
    return lines


def fitting(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    """Return the columns that fit side by side, in their order, the first one cut if need be."""
    kept = list(columns)
    while len(kept) > 1 and _least_width(kept) > width:
        kept.remove(min(kept[1:], key=lambda column: column.worth))
    first, rest = kept[0], kept[1:]
    room = width - sum(column.width + GAP for column in rest)
    cells = [cut_start(cell, room) for cell in first.cells]
    head = first.head if len(first.head) <= room or not first.short_head else first.short_head
    return [replace(first, head=cut_end(head, room), cells=cells), *rest]


def table_lines(columns: Sequence[TextColumn]) -> list[str]:
    """Return the lines of a table, the head first."""
    padded = []
    for column in columns:
        cells = (column.head, *column.cells)
        padded.append([cell.ljust(column.width) if column.is_text else cell.rjust(column.width) for cell in cells])
    return [(" " * GAP).join(cells).rstrip() for cells in zip(*padded, strict=True)]


def shared_rows(free: int, sites: int, peers: int) -> tuple[int, int]:
    """Return the numbers of rows of the tables of sites and of peers, which share `free` lines.

    Each table has a head of one line, unless it has no row. The last row of peers may be a line that counts the others.
    Where there is no room for both, the table of sites comes first, as the line above counts the peers.
    """
    if free < 2:
        return 0, 0
    sites_room = free - 1 - (min(peers, 3) + 1 if free >= 6 else 0) if peers else free - 1
    shown_sites = min(sites, max(1, sites_room, free // 2 - 1)) if sites else 0
    left = free - (shown_sites + 1 if shown_sites else 0)
    return shown_sites, min(peers, left - 1) if left >= 2 else 0


def most_frequent(counts: Mapping[str, int], width: int) -> str:
    """Return the names with their counts, the largest first, as many as fit into the width."""
    pieces = [f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    for shown in range(len(pieces), 0, -1):
        others = len(pieces) - shown
        text = ", ".join(pieces[:shown]) + (f" and {others} more" if others else "")
        if len(text) <= width:
            return text
    return ""


def cut_start(text: str, width: int) -> str:
    """Return the end of a text that is too long, after an ellipsis."""
    return text if len(text) <= width else ELLIPSIS + text[len(text) - max(0, width - 1) :]


def cut_end(text: str, width: int) -> str:
    """Return the start of a text that is too long, before an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + ELLIPSIS


def _least_width(columns: Sequence[TextColumn]) -> int:
    first = columns[0]
    return min(first.width, first.least or first.width) + sum(column.width + GAP for column in columns[1:])
