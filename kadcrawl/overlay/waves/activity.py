"""Events that say whether this peer has work, and whether the whole swarm is known to have none."""

from collections.abc import Callable

from kadcrawl.system.event import Event


class Activity:
    """The work of this peer as events, and a counter of its activity (`termination` and the wave's view read them)."""

    def __init__(self) -> None:
        self.count = 0
        self.armed = False
        """The job has seeds. Before that, having no work is no end."""
        self.over = Event()
        """Set when the swarm was quiescent, no page is due again, and no work was done here since."""
        self.resting = False
        """The swarm was quiescent until pages are due again, and no work was done here since."""
        self.idle = Event()
        """Set when this peer has no work, and it is not known yet whether the whole swarm has none."""
        self.busy = Event()
        self.on_end: list[Callable[[], None]] = []
        """Functions that are called when the swarm turns out to be quiescent."""

    def move(self) -> None:
        """Count that an entry was accepted, begun or finished here."""
        self.count += 1
        self.over.clear()
        self.resting = False

    def settle(self, idle: bool) -> None:
        """Note whether this peer has no work left at this moment."""
        if idle and self.armed:
            self.busy.clear()
            if not self.over.is_set() and not self.resting:
                self.idle.set()
        else:
            self.busy.set()
            self.idle.clear()

    def doubt(self) -> None:
        """Reopen the question whether all is over: a peer has come that was not asked."""
        if self.over.is_set() or self.resting:
            self.over.clear()
            self.resting = False
            if not self.busy.is_set():
                self.idle.set()

    def end_rest(self) -> None:
        """Reopen the question whether all is over if the swarm rests, as a limit says that no page is due again."""
        if self.resting:
            self.doubt()

    def end(self) -> None:
        """Note that the swarm is quiescent, and no page is due again."""
        self.over.set()
        self.resting = False
        self.idle.clear()
        self._tell_end()

    def rest(self) -> None:
        """Note that the swarm is quiescent until pages are due again."""
        self.resting = True
        self.over.clear()
        self.idle.clear()
        self._tell_end()

    def _tell_end(self) -> None:
        for listener in self.on_end:
            listener()
