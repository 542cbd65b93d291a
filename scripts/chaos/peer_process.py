"""One real peer in a process of its own: wait until it is ready, and give it commands."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Final

from scripts.chaos.machines import PeerHost

KADCRAWL: Final = str(Path(sys.executable).with_name("kadcrawl"))
READY_S: Final = 60.0
"""Seconds for a start. A peer joins in a second or two, on a busy machine in somewhat more."""
COMMAND_S: Final = 60.0
PROCESS_POLL_S: Final = 0.05

_LISTENS = re.compile(r"--bootstrap (\S+)")


class PeerProcess:
    """The process of one peer. A peer that is started again on its directory is another process."""

    def __init__(
        self, name: str, machine: PeerHost, directory: Path, said: Path, process: asyncio.subprocess.Process
    ) -> None:
        self.name = name
        self.machine = machine
        self.directory = directory
        self.said = said
        """The file with the standard output and error."""
        self.process = process
        self.address = ""
        """HOST:PORT, once it is ready."""
        self.exit_expected = 0

    @property
    def living(self) -> bool:
        """True if the process runs and has not been told to end."""
        return self.process.returncode is None and self.exit_expected == 0

    async def ready(self) -> None:
        """Wait until it has joined. Raises RuntimeError if it ends instead, TimeoutError."""
        async with asyncio.timeout(READY_S):
            while (found := _LISTENS.search(self.said.read_text())) is None:
                if self.process.returncode is not None:
                    raise RuntimeError(f"{self.name} ended before it was ready: {self.said.read_text().strip()}")
                await asyncio.sleep(PROCESS_POLL_S)
        self.address = found[1]

    async def command(self, *arguments: str) -> str:
        """Run a command on the peer's machine and return its output. Raises RuntimeError if it fails, TimeoutError."""
        process = await asyncio.create_subprocess_exec(
            *self.machine.prefix,
            *[KADCRAWL, *arguments, "--peer", self.address, "--data", str(self.directory)],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(COMMAND_S):
                said, complaint = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise RuntimeError(
                f"kadcrawl {arguments[0]} exited with {process.returncode}: {complaint.decode().strip()}"
            )
        return said.decode()
