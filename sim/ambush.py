"""Ambushes: machines that lose power just when they hold something that no other has.

Such moments are short, and a power cut at any time hardly ever meets one. Which machine, and within which time, is in
the plan; when it comes is a function of the world, so the same plan is still the same world. Pure: the caller looks.
"""

from collections.abc import Callable

from .plan import Event

STEP_S = 0.01
"""How often to look while an ambush is laid."""


class Ambushes:
    """Those that are laid."""

    def __init__(self, is_alone: Callable[[int], bool]) -> None:
        """`is_alone` says whether a machine holds, just now, a record that no other has as far."""
        self._is_alone = is_alone
        self._since: dict[Event, float | None] = {}
        """Laid -> since when one of its machines has held such a record; None if none does."""

    def __bool__(self) -> bool:
        return bool(self._since)

    def lay(self, event: Event) -> None:
        self._since[event] = None

    def lift(self, event: Event) -> bool:
        """Its time is over; return whether it has not been sprung."""
        laid = event in self._since
        self._since.pop(event, None)
        return laid

    def sprung(self, now: float) -> list[Event]:
        """Look, and return those whose moment has come; they are laid no more."""
        for event, since in self._since.items():
            if not any(map(self._is_alone, event.machines)):
                self._since[event] = None
            elif since is None:
                self._since[event] = now
        come = [event for event, since in self._since.items() if since is not None and now >= since + event.amount]
        for event in come:
            del self._since[event]
        return come
