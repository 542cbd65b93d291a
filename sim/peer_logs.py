"""Log records of peers as lines in the story of a simulated world."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .network import HOST


class _LogLines(logging.Handler):
    """A logging handler that passes each record on, with the IP of its machine."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        host = HOST.get(None)
        self._say(f"{host.ip if host else '':<12} {record.getMessage()}")


@contextmanager
def peer_logs(say: Callable[[str], None]) -> Iterator[None]:
    """Pass each log record of kadcrawl on while the context is open, as a line that begins with its machine."""
    log = logging.getLogger("kadcrawl")
    handler, level = _LogLines(say), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def plain_records() -> Iterator[None]:
    """Let log records hold the texts of errors, and not the errors, while the context is open.

    An error holds its traceback, and that a whole peer. So a test that keeps records would keep the world as well.
    """
    make = logging.getLogRecordFactory()

    def made(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if isinstance(record.args, tuple):
            record.args = tuple(str(one) if isinstance(one, BaseException) else one for one in record.args)
        return record

    logging.setLogRecordFactory(made)
    try:
        yield
    finally:
        logging.setLogRecordFactory(make)
