"""A crawl on a terminal: the picture at its foot, as wide as the terminal, and gone at the end."""

import asyncio
import os
import re
import signal
import termios
from pathlib import Path

from tests.support.sites.web import Web, tree
from tests.support.swarm.command import KADCRAWL, PIPE, STARTED, crawl, swarm_key

COLUMNS, LINES = 80, 24
ERASED = "\x1b[2K"
"""The code that clears a line, by which the picture is taken away."""


async def test_on_a_terminal_a_crawl_shows_its_bar_its_sites_and_its_peers(tmp_path: Path) -> None:
    ours, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (LINES, COLUMNS))
    async with Web(2) as site:
        site.fallback = tree(5_000, 2)(site)
        process = await asyncio.create_subprocess_exec(
            KADCRAWL,
            *crawl(tmp_path / "data", site.url("/0"), peers=2),
            *("--delay", "0.05"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=terminal,
            env=os.environ | {"KADCRAWL_KEY": swarm_key(), "TERM": "xterm", "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(terminal)
        STARTED.append(process)
        async with asyncio.timeout(60):
            shown = await asyncio.to_thread(_read_until, ours, "largest and slowest sites.*in flight")
            process.send_signal(signal.SIGINT)
            rest = await asyncio.to_thread(_read_to_end, ours)
            await process.communicate()
        assert process.returncode == 11
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "1 site at 20 requests/s: more peers do not make this faster" in plain
    assert re.search(r"━ \d+ of \d+ URLs done, \d+ %", plain), plain
    assert re.search(r"^\d+\.\d pages/s", plain, re.M), plain
    assert re.search(r"^127\.0\.0\.\d:\d+ +\d+  0\.05 s, --delay ", plain, re.M), plain
    assert [] == [line for line in plain.splitlines() if len(line) > COLUMNS and "finishing" not in line]
    assert ERASED in rest


def _read_until(fd: int, pattern: str) -> str:
    shown = ""
    while not re.search(pattern, shown, re.DOTALL):
        shown += os.read(fd, 65_536).decode(errors="replace")
    return shown


def _read_to_end(fd: int) -> str:
    shown = ""
    try:
        while read := os.read(fd, 65_536):
            shown += read.decode(errors="replace")
    except OSError:  # Linux says so that nobody has the other end open any more.
        pass
    return shown
