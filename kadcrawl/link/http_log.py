"""Limits on the log lines of aiohttp for broken HTTP: as many as for any other refusal, without tracebacks.

Otherwise a member could fill the log, and push out the lines about other peers.
"""

import logging
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError


class HttpErrorFilter(logging.Filter):
    """Drops aiohttp's record of broken HTTP and passes the reason on. Other errors are logged as usual."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return True
        self._note(str(error.message).partition("\n")[0][:100])
        return False


def quiet_logger(log: logging.Logger, note: Callable[[str], None]) -> logging.Logger:
    """Return a logger for one server of aiohttp that logs as `log` does, except for broken HTTP."""
    logger = logging.Logger(f"{log.name}.http")
    logger.parent = log
    logger.addFilter(HttpErrorFilter(note))
    return logger
