"""Test the texts of others in the log of a peer's directory."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from kadcrawl.cli.log_file import LOG
from kadcrawl.crawl.content.record_worker import said
from kadcrawl.link.wire.codec import MalformedError, unpack
from kadcrawl.link.wire.messages import Ping
from kadcrawl.system.log_format import OneLine
from scripts.docs.log_meanings import MEANINGS
from tests.support.sites.web import Web, tree
from tests.support.swarm.command import crawl, kadcrawl

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


CRASHING = """
import logging, sys
from pathlib import Path
from kadcrawl import Config
from kadcrawl.cli.log_file import log_to, secrets_of_machine
from kadcrawl.cli.machine import LogSettings
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.settings.secrets import Secrets

key = SwarmKey.generate()
config = Config(data=Path(sys.argv[1]), swarm_key=key, secrets=Secrets({"wiki": "user:pass-word"}))
secrets = secrets_of_machine(config.swarm_key, config.secrets)
log_to(config.data, LogSettings(sys.argv[2], sys.argv[3]), secrets, lambda: "a6da4c0e")
logging.getLogger("kadcrawl.x").info("login.failed why=%s", f"pass-word {key.text}")
logging.getLogger("kadcrawl.x").debug("cell.opened cell=%d", 3)
raise RuntimeError("a bug with pass-word\\nin two lines")
"""


def crash(directory: Path, form: str, level: str) -> list[str]:
    """Let a process log and crash, and return its log."""
    done = subprocess.run([sys.executable, "-c", CRASHING, str(directory), form, level], capture_output=True, text=True)
    assert 1 == done.returncode
    assert "RuntimeError: a bug" in done.stderr
    return (directory / LOG).read_text().splitlines()


def test_a_process_logs_lines_of_json_to_its_very_end(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in crash(tmp_path, "json", "info")]
    assert ["login.failed", "peer.crashed"] == [line["event"] for line in lines]
    assert "*** ***" == lines[0]["fields"]["why"]
    assert "a bug with ***\nin two lines" == lines[1]["fields"]["why"]
    assert lines[1]["traceback"].endswith("RuntimeError: a bug with ***\nin two lines")
    assert {"a6da4c0e"} == {line["peer"] for line in lines}


def test_the_level_decides_which_lines_are_written(tmp_path: Path) -> None:
    for level, events in (("debug", 3), ("info", 2), ("warning", 1)):
        directory = tmp_path / level
        directory.mkdir()
        lines = [line for line in crash(directory, "text", level) if line[0] != " "]
        assert events == len(lines)
        assert "pass-word" not in "".join(lines)


async def test_all_peers_of_a_crawl_log_as_told(tmp_path: Path) -> None:
    async with Web(16) as site:
        site.fallback = tree(60, 16)(site)
        command = crawl(tmp_path, site.url("/0"), peers=2)
        run = await kadcrawl(*command, "--log-format", "json", "--log-level", "debug")
        assert 0 == run.code, run
    logs = [(tmp_path / name / LOG).read_text().splitlines() for name in ("peer-1", "peer-2")]
    for lines in logs:
        said = [json.loads(line) for line in lines]
        ours = [line for line in said if line["module"].startswith("kadcrawl")]
        assert {line["event"] for line in ours} <= MEANINGS.keys()
        assert {"debug", "info"} <= {line["level"] for line in said}
        assert 1 == len({line["peer"] for line in said if line["event"] == "peer.begun"} - {""})
