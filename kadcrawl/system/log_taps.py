"""`LogTaps`: the one place that listens to the log of this process while somebody watches, for all of its peers.

A handler hears the events that the log's level lets through. For some modules, whose events are of level debug, a
filter hears these too, and keeps them from all other handlers, so the log of the peer stays as it is. Without a
listener there is neither.
"""

import logging
from collections.abc import Callable, Iterable

PACKAGE = "kadcrawl"

Listener = Callable[[logging.LogRecord], None]


class _Handler(logging.Handler):
    """Hands the records of the package on."""

    def __init__(self, tell: Listener) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record)


class _DebugFilter(logging.Filter):
    """Hands the records below the level of a logger on, and lets no other handler have them."""

    def __init__(self, logger: logging.Logger, tell: Listener) -> None:
        super().__init__()
        self._logger = logger
        self._own_level = logger.level
        self._least = logger.getEffectiveLevel()
        self._tell = tell
        logger.addFilter(self)
        logger.setLevel(logging.DEBUG)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= self._least:
            return True
        self._tell(record)
        return False

    def remove(self) -> None:
        """Leave the logger as it was."""
        self._logger.removeFilter(self)
        self._logger.setLevel(self._own_level)


class LogTaps:
    """The listeners to the log of this process."""

    def __init__(self, debugged: Iterable[str]) -> None:
        """`debugged` names the loggers whose records of level debug are heard too."""
        self._debugged = tuple(debugged)
        self._listeners: list[Listener] = []
        self._handler = _Handler(self._tell)
        self._filters: list[_DebugFilter] = []

    def add(self, listener: Listener) -> None:
        """Tell a listener each record from now on."""
        if not self._listeners:
            logging.getLogger(PACKAGE).addHandler(self._handler)
            self._filters = [_DebugFilter(_named(name), self._tell) for name in self._debugged]
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Tell a listener no more, if it is one."""
        if listener not in self._listeners:
            return
        self._listeners.remove(listener)
        if not self._listeners:
            logging.getLogger(PACKAGE).removeHandler(self._handler)
            for one in self._filters:
                one.remove()
            self._filters = []

    def clear(self) -> None:
        """Tell no listener any more."""
        for listener in [*self._listeners]:
            self.remove(listener)

    def _tell(self, record: logging.LogRecord) -> None:
        for listener in [*self._listeners]:
            listener(record)


def _named(name: str) -> logging.Logger:
    return logging.getLogger(name)
