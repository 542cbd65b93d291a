"""One machine of a page: a directory and a shell that keeps its variables, its directory and its jobs."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

COMMAND_S: Final = 60.0
"""Seconds that a command may take."""
READY_S: Final = 30.0
"""Seconds until a command in the background is ready."""
SHOWN_S: Final = 10.0
"""Seconds for which a ready command may go on to print the output of the page."""
LOOK_S: Final = 0.05
READY: Final = re.compile(r"others join with|draws pages of other peers")
_OF_THE_SHELL: Final = re.compile(r"^\S*: line \d+: +\d+ (Killed|Terminated|Interrupt|Hangup)")


class TooLong(Exception):
    """A command did not end, or was not ready, in its time."""

    def __init__(self, why: str, lines: list[str]) -> None:
        super().__init__(why)
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Done:
    """The output of a command, so far if the command runs in the background."""

    lines: list[str]
    exit_code: int | None
    """None while the command runs."""


@dataclass(slots=True)
class Machine:
    """A shell in a directory of its own."""

    home: Path
    scratch: Path
    """A directory for commands and their outputs, which no example sees."""
    environment: Mapping[str, str]
    shown: Callable[[str], str]
    """Returns an output as the page shows it."""
    _shell: asyncio.subprocess.Process | None = None
    _count: int = 0

    async def run(self, text: str, columns: int = 80, pace: int = 50, limit_s: float = COMMAND_S) -> Done:
        """Run a command to its end. Raises TooLong."""
        place = self._place(text)
        status = place.with_suffix(".status")
        await self._say(
            f'COLUMNS={columns}; EXAMPLE_PACE={pace}; eval "$(<{place})" >{place}.out 2>&1 </dev/null; '
            f"echo $? >{status}.new; mv {status}.new {status}"
        )
        try:
            async with asyncio.timeout(limit_s):
                while not status.exists():
                    assert self._shell is not None, "a shell was told the command"
                    if self._shell.returncode is not None:
                        return Done(self._lines(place), self._shell.returncode)
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise TooLong(f"it did not end within {limit_s:.0f} s", self._lines(place)) from None
        return Done(self._lines(place), int(status.read_text()))

    async def begin(
        self, text: str, is_shown: Callable[[Sequence[str]], bool] | None, columns: int = 80, pace: int = 50
    ) -> Done:
        """Begin a command in the background, and return when it is ready and has printed the output of the page.

        A command of kadcrawl is ready when it says how others join. Raises TooLong.
        """
        place = self._place(re.sub(r"&\s*$", "", text))
        status = place.with_suffix(".status")
        await self._say(
            f"COLUMNS={columns}; EXAMPLE_PACE={pace}; "
            f'{{ trap : TERM INT HUP; eval "$(<{place})"; echo $? >{status}.new; '
            f"mv {status}.new {status}; }} >{place}.out 2>&1 </dev/null &"
        )
        loop = asyncio.get_running_loop()
        begun_at = loop.time()
        ready_at: float | None = None
        needs_peer = not re.search(r"&\s*$", text)
        while True:
            ended = status.exists()
            lines = self._lines(place)
            now = loop.time()
            if ended:
                return Done(lines, int(status.read_text()))
            if ready_at is None and (not needs_peer or any(READY.search(line) for line in lines)):
                ready_at = now
            if ready_at is None and now > begun_at + READY_S:
                raise TooLong(f"it was not ready within {READY_S:.0f} s", lines)
            if ready_at is not None and (is_shown is None or is_shown(lines) or now > ready_at + SHOWN_S):
                return Done(lines, None)
            await asyncio.sleep(LOOK_S)

    def _place(self, text: str) -> Path:
        self._count += 1
        place = self.scratch / f"{self.home.name}-{self._count}"
        place.write_text(text + "\n")
        return place

    def _lines(self, place: Path) -> list[str]:
        output = place.with_name(place.name + ".out")
        text = output.read_text(errors="replace") if output.exists() else ""
        lines = self.shown(text).rstrip("\n").split("\n") if text else []
        # A terminal shows a line after a carriage return in place of the line before it.
        return [line.rpartition("\r")[2] for line in lines if not _OF_THE_SHELL.match(line)]

    async def _say(self, line: str) -> None:
        if self._shell is None or self._shell.returncode is not None:  # After `exit` the next command has a new shell.
            self._shell = await asyncio.create_subprocess_exec(
                *("bash", "--noprofile", "--norc"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self.home,
                env=dict(self.environment),
                start_new_session=True,
            )
            assert self._shell.stdin is not None, "stdin is a pipe"
            self._shell.stdin.write(b"set -m\n")
        assert self._shell.stdin is not None, "stdin is a pipe"
        self._shell.stdin.write(line.encode() + b"\n")
        await self._shell.stdin.drain()

    async def close(self) -> None:
        """Wait for the shell, which the caller has killed."""
        if self._shell is not None:
            if self._shell.stdin is not None:
                self._shell.stdin.close()
            await self._shell.wait()
