"""Test the texts of others in the log of a peer's directory."""

import logging
from pathlib import Path

import pytest

from kadcrawl.cli.run import OneLine
from kadcrawl.crawl.content.record_worker import said
from kadcrawl.link.wire.codec import MalformedError, unpack
from kadcrawl.link.wire.messages import Ping

FORGED = "x\n2026-01-01 00:00:00,000 INFO kadcrawl swarm.done pages=0\x1b[2J\u202e"


def test_nobody_begins_a_line_of_the_log_or_steers_who_reads_it(tmp_path: Path) -> None:
    """The texts are the unknown name of a message, and a page quoted by an exception of a hook."""
    tag = FORGED.encode()[:31]
    with pytest.raises(MalformedError) as malformed:
        unpack(b"\x91" + bytes([0xA0 + len(tag)]) + tag, Ping, 100)
    log = logging.Logger("kadcrawl.test")
    handler = logging.FileHandler(tmp_path / "log", encoding="utf-8")
    handler.setFormatter(OneLine("%(levelname)s %(message)s"))
    log.addHandler(handler)
    log.warning("link.malformed why=%s", malformed.value)
    log.warning("record.failed why=%s", said(ValueError(FORGED)))
    log.warning("plain why=%s", "\u4e2d")
    try:
        raise ValueError(FORGED)
    except ValueError:
        log.exception("crawl.bug")
    handler.close()
    text = (tmp_path / "log").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert ["WARNING", "WARNING", "WARNING", "ERROR"] == [line.split()[0] for line in lines if line[0] != " "]
    assert all(line.isprintable() for line in lines)
    assert lines[2].endswith("why=\u4e2d")
    assert lines[-2:] == ["  ValueError: x", "  2026-01-01 00:00:00,000 INFO kadcrawl swarm.done pages=0?[2J?"]
