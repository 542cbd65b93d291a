"""Test the listeners to the log: they hear what is of level debug too, and the log stays as it is."""

import logging
from collections.abc import Iterator

import pytest

from kadcrawl.system.log_taps import LogTaps

NAME = "kadcrawl.tapped"


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """Set the level of the package as a peer does."""
    package = logging.getLogger("kadcrawl")
    before = package.level
    package.setLevel(logging.INFO)
    yield
    package.setLevel(before)


def test_a_listener_hears_the_records_that_no_other_handler_gets(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    taps = LogTaps([NAME])

    def listen(record: logging.LogRecord) -> None:
        heard.append(record.getMessage())

    log, other = logging.getLogger(NAME), logging.getLogger("kadcrawl.other")
    taps.add(listen)
    for logger in (log, other):
        logger.debug("debug of=%s", logger.name)
        logger.info("info of=%s", logger.name)
    taps.remove(listen)
    for logger in (log, other):
        logger.debug("debug later")
        logger.info("info later")
    assert [f"debug of={NAME}", f"info of={NAME}", "info of=kadcrawl.other"] == heard
    in_log = [record.getMessage() for record in caplog.records]
    assert [f"info of={NAME}", "info of=kadcrawl.other", "info later", "info later"] == in_log
    assert ([], logging.NOTSET) == (log.filters, log.level)


def test_the_taps_stay_until_the_last_listener_goes() -> None:
    heard: list[int] = []
    taps, log = LogTaps([NAME]), logging.getLogger(NAME)

    def one(_: logging.LogRecord) -> None:
        heard.append(1)

    def two(_: logging.LogRecord) -> None:
        heard.append(2)

    taps.add(one)
    taps.add(two)
    taps.remove(one)
    taps.remove(one)
    log.debug("x")
    taps.remove(two)
    log.debug("x")
    assert [2] == heard


def test_all_listeners_can_be_ended_at_once() -> None:
    heard: list[int] = []
    taps, log = LogTaps([NAME]), logging.getLogger(NAME)
    taps.add(lambda _: heard.append(1))
    taps.add(lambda _: heard.append(2))
    taps.clear()
    log.debug("x")
    assert ([], [], logging.NOTSET) == (heard, log.filters, log.level)
