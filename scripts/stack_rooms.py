"""The rooms of the house by sampled stacks: each sample belongs to the innermost frame of kadcrawl. No I/O.

Built-in functions have no frame, and the libraries serve many rooms: their time is that of the room that calls them.
Only what the event loop calls without kadcrawl's doing has a room of its own, and so has the import of modules. The
other threads of a peer sync files, and wait: they are left out.

Tests: tests/scripts/test_page_profile.py
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

START_UP: Final = "start-up"
LOOP: Final = "event loop"
IMPORTING: Final = "_find_and_load"
THREAD: Final = "_bootstrap"
"""The function in which each thread but the main thread begins."""
LOOP_FILE: Final = "kadcrawl/cli/run.py"
"""The file whose frame is below all that the loop calls."""
BELOW_THE_LOOP: Final = (
    LOOP_FILE,
    "/child_main.py",
    "/fork_server.py",
    "/kadcrawl/cli/__init__.py",
    "/kadcrawl/__main__.py",
)
"""The files of the frames from the start of a peer's process to its loop."""
LIBRARIES: Final = (
    ("/aiohttp/web", "link"),
    ("/aiohttp/_websocket/", "link"),
    ("/aiohttp/", "crawl/fetch"),
)
"""(part of a library's path, room) for frames that the loop itself calls. The first match counts."""
_FRAME: Final = re.compile(r"(?P<name>.*) \((?P<file>[^()]*):\d+\)")


@dataclass(frozen=True, slots=True)
class RoomShares:
    """The samples of a profile, by room and by function."""

    rooms: Counter[str]
    functions: Counter[str]
    """Samples in which a function, or built-in code that it called, was at work. Without start-up."""


def shares_of(lines: Iterable[str], package: str) -> RoomShares:
    """Return the rooms of the stacks in py-spy's raw format. `package` is the directory of kadcrawl."""
    rooms: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        frames = [match for match in map(_FRAME.fullmatch, stack.split(";")) if match]
        if not frames or frames[0]["name"].endswith(THREAD):
            continue  # The process was between two programs, or the thread is no main thread.
        room = room_of([(match["name"], match["file"]) for match in frames], package)
        rooms[room] += int(count)
        if room != START_UP:
            functions[_function(frames[-1]["name"], frames[-1]["file"])] += int(count)
    return RoomShares(rooms, functions)


def room_of(frames: Sequence[tuple[str, str]], package: str) -> str:
    """Return the room of a stack of (function, file), outermost first."""
    if any(name.startswith(IMPORTING) for name, _ in frames):
        return START_UP
    for _, file in reversed(frames):
        if file.startswith(package):
            inner = file[len(package) :].lstrip("/")
            return LOOP if f"kadcrawl/{inner}" == LOOP_FILE else _folder(inner)
        for part, room in LIBRARIES:
            if part in file and not any(other.startswith(package) for _, other in frames if not _is_loop(other)):
                return room
    return LOOP


def _is_loop(file: str) -> bool:
    return file.endswith(BELOW_THE_LOOP)


def _folder(inner: str) -> str:
    """Return the room of a file of the package: its folder, or two in the largest of them."""
    folders = inner.split("/")[:-1]
    if not folders:
        return "URLs and keys" if inner in ("urls.py", "keys.py") else "kadcrawl"
    return "/".join(folders[: 2 if folders[0] == "crawl" else 1])


def _function(name: str, file: str) -> str:
    return f"{'/'.join(file.split('/')[-2:])} {name}"
