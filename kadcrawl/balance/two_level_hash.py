"""The two-level hash of P3: a number goes to the node at its place, or by a second division to a node that is alive.

The *virtual table* has a place for each possible node, and the *real table* holds the nodes that are alive. The places
are numbered from 0, and a node is its place. While the tables do not change, each caller finds the same node.
"""

from collections.abc import Iterable, Sequence


def two_level_hash(numbers: Iterable[int], possible: int, alive: Sequence[int]) -> list[int]:
    """Return the node of each number: t = number mod `possible` if t is alive, else alive[number mod len(alive)].

    Args:
        numbers: hashes, 0 or above.
        possible: the size of the virtual table (a).
        alive: the real table (b nodes), without repeats, each below `possible`, in an order all callers share.

    Raises:
        ValueError: no node is alive.
    """
    if not alive:
        raise ValueError("no node is alive: add a node before a number is given to one")
    virtual: list[int | None] = [None] * possible
    for place in alive:
        virtual[place] = place
    at_place = ((number, virtual[number % possible]) for number in numbers)
    return [alive[number % len(alive)] if node is None else node for number, node in at_place]
