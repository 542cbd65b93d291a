"""The log file of a peer's process: its place, its size, its form and its level.

Tests: tests/cli/test_log.py
"""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from kadcrawl.cli.machine import LogSettings
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.system.log_format import JsonLines, OneLine, hiding
from kadcrawl.system.peer_name import peer_name

LOG = "peer.log"
LOG_BYTES_MAX = 10_000_000
"""Size at which a log is closed and the next begins."""
LOGS_KEPT = 3
"""Full logs kept beside the one being written."""

log = logging.getLogger(__name__)


def secrets_of_machine(swarm_key: SwarmKey | None, secrets: Mapping[str, str]) -> list[str]:
    """Return the texts that must not stand in a log."""
    return [*secrets.values(), *([] if swarm_key is None else [swarm_key.text])]


def log_to(
    directory: Path, settings: LogSettings, secrets: Sequence[str], peer: Callable[[], str], *, of_many: bool = False
) -> None:
    """Write the log of this process below the peer's directory, out of the way of a person's terminal.

    `peer` returns the short ID or name of the peer. With `of_many`, each line of text has it. A failure that ends the
    process stands in the log as well.
    """
    redact = hiding(secrets)
    handler = RotatingFileHandler(directory / LOG, maxBytes=LOG_BYTES_MAX, backupCount=LOGS_KEPT)
    if of_many:
        handler.addFilter(_name_peer)
    text_form = f"%(asctime)s %(levelname)s {'%(peer)s ' if of_many else ''}%(name)s %(message)s"
    handler.setFormatter(JsonLines(peer, redact) if settings.format == "json" else OneLine(text_form, redact))
    logging.basicConfig(handlers=[handler], level=settings.level.upper())
    before = sys.excepthook

    def crashed(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, Exception):
            log.critical("peer.crashed why=%s", error, exc_info=(kind, error, traceback))
        before(kind, error, traceback)

    sys.excepthook = crashed


def _name_peer(record: logging.LogRecord) -> bool:
    record.peer = peer_name.get()
    return True
