"""A fast static server: each directory is a site on a loopback address of its own, for tests and bench.

The benchmark runs it on the same machine as the crawlers, so it must cost far less than they do: files are
read once and kept, and there is no application around the handler. Bytes go out as they are, and HTML without
a charset in its header, so that a crawler has to find out. A directory is its index.html, and one named
without the last slash redirects, as everywhere.

``python -m scripts.static_server [--log FILE] DIR...`` prints a JSON list of the sites' URLs and serves until
SIGTERM or SIGINT. The log holds one JSON object per request: time (seconds), site, path, status, user_agent;
it is complete when the process has ended.
"""

import argparse
import asyncio
import json
import mimetypes
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import uvloop
from aiohttp import web

FIRST_ADDRESS: Final = 2
"""Sites live on 127.0.0.2, 127.0.0.3, ..."""
KEPT_BYTES_MAX: Final = 1_000_000_000
"""Bytes of files kept in memory, all sites together. Files beyond it are read again each time."""

Log = Callable[[dict[str, str | int | float]], None]


class StaticReply(NamedTuple):
    """The answer for one path of a site."""

    status: int
    body: bytes
    headers: dict[str, str]


class StaticDirectory:
    """The files below one root, read when first asked for. Symbolic links do not lead out of it."""

    def __init__(self, root: Path, keep_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._root = root.resolve(strict=True)
        self._keep_bytes_left = keep_bytes_max
        self._kept: dict[str, StaticReply] = {}

    def reply(self, path: str) -> StaticReply:
        """Return the answer to `path`, as sent by a client: escaped, perhaps with a query."""
        reply = self._kept.get(path)
        if reply is None:
            reply = self._read(path)
            if len(reply.body) <= self._keep_bytes_left:
                self._keep_bytes_left -= len(reply.body)
                self._kept[path] = reply
        return reply

    def file(self, path: str) -> Path | None:
        """Return the file or directory for `path`, as sent by a client, or None if the site has none there."""
        try:
            file = (self._root / unquote(path.partition("?")[0]).lstrip("/")).resolve(strict=True)
            if file.is_dir() and file.is_relative_to(self._root) and path.partition("?")[0].endswith("/"):
                file = (file / "index.html").resolve(strict=True)
        except (OSError, ValueError):  # ValueError: a NUL in the path
            return None
        return file if file.is_relative_to(self._root) else None

    def _read(self, path: str) -> StaticReply:
        file = self.file(path)
        if file is not None and file.is_dir():
            return StaticReply(301, b"", {"Location": f"{path.partition('?')[0]}/"})
        if file is not None:
            try:
                return StaticReply(200, file.read_bytes(), {"Content-Type": content_type(file.name)})
            except OSError:
                pass
        return StaticReply(404, b"<!doctype html><title>404</title>", {"Content-Type": "text/html"})


def content_type(name: str) -> str:
    """Return the media type of a file by its name. Compressed files keep their own type."""
    media_type, encoding = mimetypes.guess_type(name)
    if encoding is not None:
        return f"application/{encoding}"
    return media_type or "application/octet-stream"


async def serve(roots: list[Path], log: Log, stack: AsyncExitStack) -> list[str]:
    """Serve each of `roots` until `stack` is closed. Return their URLs, each ending in a slash."""
    return [await _serve(StaticDirectory(root), number, log, stack) for number, root in enumerate(roots)]


async def _serve(directory: StaticDirectory, number: int, log: Log, stack: AsyncExitStack) -> str:
    listener = stack.enter_context(socket.socket())
    listener.bind((f"127.0.0.{FIRST_ADDRESS + number}", 0))
    host, port = listener.getsockname()
    site = f"http://{host}:{port}"
    clock = asyncio.get_running_loop().time

    async def answer(request: web.BaseRequest) -> web.Response:
        path = request.raw_path
        reply = directory.reply(path)
        agent = request.headers.get("User-Agent", "")
        log({"time": clock(), "site": site, "path": path, "status": reply.status, "user_agent": agent})
        return web.Response(status=reply.status, body=reply.body, headers=reply.headers)

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.SockSite(runner, listener).start()
    return f"{site}/"


async def _serve_until_stopped(roots: list[Path], log_file: Path | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        log: Log = lambda _: None  # noqa: E731
        if log_file is not None:
            lines = stack.enter_context(log_file.open("w", buffering=1 << 16))
            log = lambda entry: print(json.dumps(entry), file=lines)  # noqa: E731
        print(json.dumps(await serve(roots, log, stack)), flush=True)
        await stopped.wait()


def main() -> None:
    """Serve the directories named on the command line."""
    parser = argparse.ArgumentParser(description="Serve each DIR on a loopback address of its own.")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write one JSON line per request")
    parser.add_argument("roots", type=Path, nargs="+", metavar="DIR")
    options = parser.parse_args()
    uvloop.run(_serve_until_stopped(options.roots, options.log))


if __name__ == "__main__":
    main()
