"""A web of any size in a process of its own: each page is a function of its host and its number.

    python -m scripts.long_web --hosts 200 --pages 10000

prints its port and seed as JSON, and serves until SIGTERM. A page has three links to pages near it, 17 to any pages of
its host, and two to other hosts. So a crawl of few pages knows many URLs. `/count` on any host tells the requests so
far. The log of requests has one bit for each page, so it stays small.

Tests: tests/scripts/test_bench_long.py
"""

import argparse
import asyncio
import json
import signal
from hashlib import blake2b
from typing import Final

HOSTS_MAX: Final = 250 * 250
NEAR, INSIDE, OUTSIDE = 3, 17, 2
"""Links to pages near, anywhere on the host, and on other hosts."""
TEXT: Final = b"<p>words between the links, as many as a page of some kilobytes has; nobody reads them twice.</p>\n"


def address(host: int) -> str:
    """Return the loopback address of a host."""
    return f"127.{20 + host // 62_500}.{host // 250 % 250}.{host % 250 + 1}"


class NumberedWeb:
    """The pages of all hosts, and the requests for them."""

    def __init__(self, hosts: int, pages: int, size: int) -> None:
        """`pages` are those of each host, and `size` is that of a page in bytes, roughly."""
        self.hosts = hosts
        self.pages = pages
        self.port = 0
        self.fetched = 0
        self.twice = 0
        self._filling = TEXT * max(0, (size - 1_500) // len(TEXT))
        self._asked = bytearray(hosts * pages // 8 + 1)
        """A bit for each page that was asked for."""

    def page(self, host: int, number: int) -> bytes:
        """Return the text of a page."""
        drawn = blake2b(b"%d/%d" % (host, number), digest_size=4 * (INSIDE + 2 * OUTSIDE) % 65 or 64).digest()
        seed = int.from_bytes(drawn, "big")
        out = [b"<!doctype html><title>%d of %d</title>" % (number, host)]
        for near in range(NEAR):
            out.append(b'<a href="/p/%d">near</a>\n' % ((NEAR * number + near + 1) % self.pages))
        for _ in range(INSIDE):
            seed, other = divmod(seed * 6364136223846793005 + 1442695040888963407 & (1 << 192) - 1, self.pages)
            out.append(b'<li><a href="/p/%d">any</a></li>\n' % other)
        for _ in range(OUTSIDE):
            seed, other = divmod(seed * 6364136223846793005 + 1442695040888963407 & (1 << 192) - 1, self.pages)
            seed, at = divmod(seed, self.hosts)
            out.append(b'<a href="http://%b:%d/p/%d">far</a>\n' % (address(at).encode(), self.port, other))
        out.append(self._filling)
        return b"".join(out)

    def answer(self, host: int, path: bytes) -> tuple[int, bytes]:
        """Return the status and the body of one request, and note it."""
        if path == b"/count":
            return 200, json.dumps({"fetched": self.fetched, "twice": self.twice}).encode()
        number = 0 if path == b"/" else int(path[3:]) if path.startswith(b"/p/") and path[3:].isdigit() else -1
        if not 0 <= number < self.pages:
            return 404, b""
        at = host * self.pages + number
        self.fetched += 1
        if self._asked[at >> 3] >> (at & 7) & 1:
            self.twice += 1
        self._asked[at >> 3] |= 1 << (at & 7)
        return 200, self.page(host, number)


class Connection(asyncio.Protocol):
    """One connection to one host."""

    def __init__(self, web: NumberedWeb, host: int) -> None:
        self._web, self._host, self._received = web, host, b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "the server speaks TCP"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None, "the connection is made"
        *heads, self._received = (self._received + data).split(b"\r\n\r\n")
        for head in heads:
            status, body = self._web.answer(self._host, head.split(b" ", 2)[1])
            self._transport.write(
                b"HTTP/1.1 %d -\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%b"
                % (status, len(body), body)
            )


async def serve(web: NumberedWeb) -> None:
    """Serve until SIGTERM. Print the port and the seed as JSON first."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    servers = []
    for host in range(web.hosts):
        server = await loop.create_server(lambda host=host: Connection(web, host), address(host), web.port)  # type: ignore[misc]
        servers.append(server)
        web.port = web.port or server.sockets[0].getsockname()[1]
    print(json.dumps({"port": web.port, "seed": f"http://{address(0)}:{web.port}/"}), flush=True)
    await ended.wait()
    for server in servers:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a web of any size on loopback.")
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--pages", type=int, default=10_000, help="of each host")
    parser.add_argument("--size", type=int, default=6_000, help="bytes of a page, roughly")
    options = parser.parse_args()
    if not 0 < options.hosts <= HOSTS_MAX:
        parser.error(f"--hosts must be from 1 to {HOSTS_MAX}")
    asyncio.run(serve(NumberedWeb(options.hosts, options.pages, options.size)))


if __name__ == "__main__":
    main()
