"""What aiohttp logs of those who speak HTTP wrongly: as much as of any other refusal, and no traceback.

Else whoever is let in could fill the log, and so push out of it what it says of others.
"""

import logging
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError


class HttpErrorFilter(logging.Filter):
    """Keeps back what is said of broken HTTP, and passes on who sent it and why; a fault of ours is logged as ever."""

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
    """Return a logger for one server of aiohttp that logs as `log`, but for broken HTTP."""
    logger = logging.Logger(f"{log.name}.http")
    logger.parent = log
    logger.addFilter(HttpErrorFilter(note))
    return logger
