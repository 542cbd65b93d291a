"""Log records of peers as lines in the story of a simulated world."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .network import HOST


class _Teller(logging.Handler):
    """Tells each log record, and on which machine it was made."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        host = HOST.get(None)
        self._tell(f"{host.ip if host else '':<12} {record.getMessage()}")


@contextmanager
def told(tell: Callable[[str], None]) -> Iterator[None]:
    """Pass each log record of kadcrawl on while the context is open, as a line that begins with its machine."""
    log = logging.getLogger("kadcrawl")
    teller, level = _Teller(tell), log.level
    log.addHandler(teller)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(teller)
        log.setLevel(level)
