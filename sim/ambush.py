"""Ambushes: power cuts at the moment at which a machine is the only holder of a record.

Such moments are short, and a power cut at a random time hardly ever meets one. The plan states the machines and the
period. The instant is a function of the world, so the same plan is still the same world. Pure: the caller checks.
"""

from collections.abc import Callable

from .plan import Event

STEP_S = 0.01
"""Virtual seconds between two looks while an ambush is laid."""


class Ambushes:
    """The ambushes that are laid and not yet sprung."""

    def __init__(self, is_alone: Callable[[int], bool]) -> None:
        """`is_alone` says whether a machine holds a record that no other machine has in as advanced a state."""
        self._is_alone = is_alone
        self._since: dict[Event, float | None] = {}
        """Laid ambush -> the instant since which one of its machines has held such a record. None: no machine holds
        one."""

    def __bool__(self) -> bool:
        return bool(self._since)

    def lay(self, event: Event) -> None:
        self._since[event] = None

    def lift(self, event: Event) -> bool:
        """Remove an ambush whose time is over. Return whether it was still laid."""
        laid = event in self._since
        self._since.pop(event, None)
        return laid

    def sprung(self, now: float) -> list[Event]:
        """Check every ambush and return the events whose moment has come. These ambushes are removed."""
        for event, since in self._since.items():
            if not any(map(self._is_alone, event.machines)):
                self._since[event] = None
            elif since is None:
                self._since[event] = now
        come = [event for event, since in self._since.items() if since is not None and now >= since + event.amount]
        for event in come:
            del self._since[event]
        return come
