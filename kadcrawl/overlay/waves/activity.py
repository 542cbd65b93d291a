"""Events that say whether this peer has work, and whether the whole swarm is known to have none."""

import asyncio


class Activity:
    """Whether this peer has anything to do, as events, and a counter that moves whenever it does anything."""

    def __init__(self) -> None:
        self.count = 0
        self.armed = False
        """The job has seeds: before that nothing to do is no end."""
        self.over = asyncio.Event()
        """The swarm was quiescent, no page is due again, and nothing has moved here since."""
        self.resting = False
        """The swarm was quiescent until pages are due again, and nothing has moved here since."""
        self.idle = asyncio.Event()
        """Nothing to do here, and it is not known yet whether that is so everywhere."""
        self.busy = asyncio.Event()

    def move(self) -> None:
        """Something was accepted, begun or finished here."""
        self.count += 1
        self.over.clear()
        self.resting = False

    def settle(self, idle: bool) -> None:
        """Say whether there is nothing left to do just now."""
        if idle and self.armed:
            self.busy.clear()
            if not self.over.is_set() and not self.resting:
                self.idle.set()
        else:
            self.busy.set()
            self.idle.clear()

    def doubt(self) -> None:
        """Somebody has come who was not asked whether all is over: it is to be asked again."""
        if self.over.is_set() or self.resting:
            self.over.clear()
            self.resting = False
            if not self.busy.is_set():
                self.idle.set()

    def end(self) -> None:
        """The swarm is quiescent, for good as far as anybody knows."""
        self.over.set()
        self.resting = False
        self.idle.clear()

    def rest(self) -> None:
        """The swarm is quiescent until pages are due again."""
        self.resting = True
        self.over.clear()
        self.idle.clear()
