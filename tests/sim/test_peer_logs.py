"""A log record of a simulated world keeps the text of an error, and not the error with all that its frames hold."""

import logging

import pytest

from sim.peer_logs import plain_records


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_record_holds_the_text_of_an_error(is_plain: bool, caplog: pytest.LogCaptureFixture) -> None:
    error, log = ValueError("no answer"), logging.getLogger("kadcrawl.test")
    if is_plain:
        with plain_records():
            log.warning("late orders=%d why=%s", 3, error)
    else:
        log.warning("late orders=%d why=%s", 3, error)
    (record,) = caplog.records
    assert "late orders=3 why=no answer" == record.getMessage()
    assert record.args == (3, "no answer" if is_plain else error)
