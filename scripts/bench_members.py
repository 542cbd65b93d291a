"""This benchmark measures the cost of keys and encryption: single steps, a whole crawl, and a flood of non-members.

    python -m scripts.bench_members
    python -m scripts.bench_members --part flood

Single steps: microseconds of CPU of one process with both ends of a conversation. Crawl: the same crawl with a key and
with --insecure, in turn, CPU of all processes. Flood: one peer crawls while another process sends it 100,000 datagrams
a second, first without knowledge of the swarm, then as an eavesdropper on its datagrams, then by repeating them. The
figure is the CPU of that peer alone. Idle: 1,000 silent connections, the peer's files and memory, and whether a member
still gets in.
"""

import asyncio
import json
import os
import re
import resource
import secrets
import shutil
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from multiprocessing import Event, Process
from multiprocessing.synchronize import Event as EventType
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click
import uvloop
from aiohttp import web
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from rich.console import Console
from rich.table import Table

from kadcrawl.link.client import LinkClient
from kadcrawl.link.server import LinkServer
from kadcrawl.link.wire.messages import GetStatus, Hello, Ok, Status
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.sealing import Sealing
from kadcrawl.members.swarm_key import SwarmKey
from scripts.kadcrawl_run import crawl_command
from scripts.measure import cost_of

SAID_BYTES = 1024
ROUNDS = 5
DATAGRAMS = 20_000
REQUESTS = 2_000
HANDSHAKES = 200
SITES = 16
PAGES = 10_000
PAGE_BYTES = 20_000
FLOOD_PER_S = 100_000
FLOOD_S = 10.0
ANY = ("--scope", "any")
IDLE = 1_000
IDLE_S = 6.0
PARTS = ("small", "crawl", "flood", "idle")


def cpu_s() -> float:
    """Return the CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def each_us(work: Callable[[], object], count: int) -> float:
    """Return the CPU of one of `count` calls in microseconds: the median of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        began = cpu_s()
        for _ in range(count):
            work()
        rounds.append((cpu_s() - began) / count * 1e6)
    return median(rounds)


# --- small -----------------------------------------------------------------------------------------------------------


def datagrams() -> list[tuple[str, float]]:
    """Return the cost of a datagram, in microseconds."""
    key = SwarmKey.generate()
    anne, bert = Sealing(PeerKey.generate(), (key,), 0), Sealing(PeerKey.generate(), (key,), 0)
    bert.open(anne.seal(b"", None) or b"")
    anne.open(bert.seal(b"", anne.peer_key.id) or b"")
    said = secrets.token_bytes(SAID_BYTES)

    def both_ways() -> None:
        datagram = anne.seal(said, bert.peer_key.id)
        assert datagram is not None
        assert bert.open(datagram) is not None

    unknown, labelled = secrets.token_bytes(SAID_BYTES), key.label + secrets.token_bytes(SAID_BYTES)
    again = anne.seal(said, bert.peer_key.id)
    assert again is not None
    assert bert.open(again) is not None
    newcomers = [PeerKey.generate() for _ in range(HANDSHAKES * ROUNDS)]
    fresh = iter([Sealing(newcomer, (key,), 0).seal(said, None) or b"" for newcomer in newcomers])
    cipher, nonce = ChaCha20Poly1305(secrets.token_bytes(32)), bytes(12)
    return [
        (
            "encrypt and decrypt 1 KB, and nothing else",
            each_us(lambda: cipher.decrypt(nonce, cipher.encrypt(nonce, said, None), None), DATAGRAMS),
        ),
        ("seal and open 1 KB", each_us(both_ways, DATAGRAMS)),
        ("a stranger's datagram", each_us(lambda: bert.open(unknown), DATAGRAMS)),
        ("... that begins as a member's", each_us(lambda: bert.open(labelled), DATAGRAMS)),
        ("... or is a member's again", each_us(lambda: bert.open(again), DATAGRAMS)),
        ("the first datagram of a member", each_us(lambda: bert.open(next(fresh)), HANDSHAKES)),
    ]


async def connections(place: Path) -> list[tuple[str, float]]:
    """Return the cost of connections and requests, in microseconds, with a key and without."""
    found = []
    for keyring in (Keyring(SwarmKey.generate()), None):
        asked = await _asked(place, keyring)
        found += [(f"{what}, {'TLS' if keyring is not None else 'open'}", figure) for what, figure in asked]
    return found


async def _asked(place: Path, keyring: Keyring | None) -> list[tuple[str, float]]:
    def credentials() -> Credentials | None:
        return Credentials(keyring, PeerKey.generate(), place, time.time, 0) if keyring is not None else None

    async def hello(_: Hello) -> Ok:
        return Ok()

    server = LinkServer(1_000_000, credentials())
    server.handle(Hello, hello)
    address = ("127.0.0.1", await server.listen("127.0.0.1", 0))
    shown = credentials()

    async def dial() -> None:
        client = LinkClient(1_000_000, shown)
        await client.open()
        await client.ask(address, Hello(1), Ok, 10)
        await client.close()

    client = LinkClient(1_000_000, shown)
    await client.open()
    await client.ask(address, Hello(1), Ok, 10)
    found = [
        ("a connection and its first request", await _each_us(dial, HANDSHAKES)),
        ("a request on a kept connection", await _each_us(lambda: client.ask(address, Hello(1), Ok, 10), REQUESTS)),
    ]
    await client.close()
    await server.close()
    return found


async def _each_us(work: Callable[[], Awaitable[object]], count: int) -> float:
    rounds = []
    for _ in range(ROUNDS):
        began = cpu_s()
        for _ in range(count):
            await work()
        rounds.append((cpu_s() - began) / count * 1e6)
    return median(rounds)


# --- a web -----------------------------------------------------------------------------------------------------------


def _serve(ready: EventType, port: "Port", pages: int) -> None:
    """Serve a web of `SITES` sites, each page with ten links all over it, until killed."""

    async def serve() -> None:
        async def page(request: web.BaseRequest) -> web.StreamResponse:
            name = request.path.strip("/")
            if not name.isascii() or not name.isdecimal() or int(name) >= pages:
                return web.Response(status=404)
            number = int(name)
            links = [number * 10 + step for step in range(1, 11)]
            urls = [f"http://127.0.0.{2 + link % SITES}:{port.value}/{link}" for link in links if link < pages]
            text = "".join(f'<a href="{url}">x</a>' for url in urls)
            return web.Response(text=text.ljust(PAGE_BYTES), content_type="text/html")

        runner = web.ServerRunner(web.Server(page, access_log=None))
        await runner.setup()
        for site in range(SITES):
            await web.TCPSite(runner, f"127.0.0.{2 + site}", port.value).start()
        ready.set()
        await asyncio.Event().wait()

    uvloop.run(serve())


class Port:
    """A port that is free on the loopback addresses, as far as can be known."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", 0))
            self.value: int = probe.getsockname()[1]


class SomeWeb:
    """The web, in a process of its own."""

    def __init__(self, pages: int) -> None:
        ready, self._port = Event(), Port()
        self._process = Process(target=_serve, args=(ready, self._port, pages), daemon=True)
        self._process.start()
        if not ready.wait(30):
            raise click.ClickException("the web does not come up")

    @property
    def seed(self) -> str:
        return f"http://127.0.0.2:{self._port.value}/0"

    def close(self) -> None:
        self._process.kill()
        self._process.join()


# --- crawl -----------------------------------------------------------------------------------------------------------


class CrawlFigures(NamedTuple):
    """One crawl of the web."""

    how: str
    cpu_s: float
    wall_s: float
    kept: float
    """Share of the questions peers asked that went by a connection they had already."""


def _kept(data: Path) -> float:
    """Return that share, from the peers' logs."""
    text = "".join(log.read_text() for log in data.glob("peer-*/peer.log"))
    asked, dialed = (sum(map(int, re.findall(rf" link\.ends .*{what}=(\d+)", text))) for what in ("asked", "dialed"))
    return 1 - dialed / asked


def crawls(place: Path, repetitions: int) -> list[CrawlFigures]:
    """Crawl the same web again and again, with a key and without in turn."""
    found = []
    web_of_pages = SomeWeb(PAGES)
    try:
        for repetition in range(repetitions):
            for how, options in (("with a key", ANY), ("--insecure", (*ANY, "--insecure"))):
                print(f"bench: crawl {how}, {repetition + 1} of {repetitions}", file=sys.stderr, flush=True)
                data = place / "crawl"
                shutil.rmtree(data, ignore_errors=True)
                command = crawl_command(
                    [web_of_pages.seed], peers=4, delay_s=0.0, data=data, summary=place / "summary", options=options
                )
                cost = cost_of(command, place / "output")
                if cost.exit_code:
                    raise click.ClickException((place / "output").read_text())
                found.append(CrawlFigures(how, cost.cpu_s, cost.wall_s, _kept(data)))
    finally:
        web_of_pages.close()
    return found


# --- flood -----------------------------------------------------------------------------------------------------------


def _flood(address: tuple[str, int], datagram: bytes, ended: EventType) -> None:
    """Send the datagram `FLOOD_PER_S` times a second until told to end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect(address)
        began, sent = time.monotonic(), 0
        while not ended.is_set():
            due = int((time.monotonic() - began) * FLOOD_PER_S)
            for _ in range(due - sent):
                try:
                    udp.send(datagram)
                except OSError:
                    pass
            sent = due
            time.sleep(0.001)


async def flooded(place: Path) -> list[tuple[str, float, float]]:
    """Return (kind of flood, share of a core, pages a second) of a crawling peer."""
    key_file = place / "swarm.key"
    key = SwarmKey.generate()
    key_file.write_text(key.text)
    key_file.chmod(0o600)
    floods = [
        ("nothing", None),
        ("datagrams of one who knows nothing", secrets.token_bytes(200)),
        ("datagrams that begin as members' do", key.label + secrets.token_bytes(196)),
        ("one datagram of a member, again and again", Sealing(PeerKey.generate(), (key,), 0).seal(bytes(130), None)),
    ]
    return [await _flooded(place / str(number), key_file, *flood) for number, flood in enumerate(floods)]


@asynccontextmanager
async def _crawling(data: Path, key_file: Path) -> AsyncIterator[tuple[int, tuple[str, int]]]:
    """Start a peer that crawls a web without end. Yield its process ID and address."""
    web_of_pages = SomeWeb(10**9)
    process = await asyncio.create_subprocess_exec(
        *[str(Path(sys.executable).with_name("kadcrawl")), "start", web_of_pages.seed, "--data", str(data)],
        *["--listen", "127.0.0.1:0", "--key-file", str(key_file), "--scope", "any", "--delay", "0.2"],
        *["--allow-network", "127.0.0.0/8"],
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(30):
            while not _lines(data):  # noqa: ASYNC110 -- the process tells nobody
                await asyncio.sleep(0.1)
        host, _, port = (data / "address").read_text().strip().rpartition(":")
        yield process.pid, (host, int(port))
    finally:
        process.kill()
        await process.wait()
        web_of_pages.close()


async def _flooded(data: Path, key_file: Path, what: str, datagram: bytes | None) -> tuple[str, float, float]:
    async with _crawling(data, key_file) as (pid, address):
        ended = Event()
        flooder = Process(target=_flood, args=(address, datagram, ended), daemon=True)
        if datagram is not None:
            flooder.start()
        try:
            await asyncio.sleep(1)
            cpu, pages = _cpu_of(pid), _lines(data)
            await asyncio.sleep(FLOOD_S)
            return what, (_cpu_of(pid) - cpu) / FLOOD_S, (_lines(data) - pages) / FLOOD_S
        finally:
            ended.set()
            if datagram is not None:
                flooder.join()


# --- idle ------------------------------------------------------------------------------------------------------------


async def idle(place: Path) -> list[tuple[str, int, float, float]]:
    """Return (when, files, MB, milliseconds until a member has its answer) of a peer with strangers at its gate."""
    key = SwarmKey.generate()
    key_file = place / "idle.key"
    key_file.write_text(key.text)
    key_file.chmod(0o600)
    found = []
    async with _crawling(place / "idle", key_file) as (pid, address):

        async def look(when: str) -> None:
            answered_s = await _answered_s(place, key, address)
            found.append((when, *_held_by(pid), answered_s * 1e3))

        await look("before")
        standing = [await asyncio.open_connection(*address) for _ in range(IDLE)]
        await asyncio.sleep(0.5)
        await look(f"{IDLE} idle connections")
        await asyncio.sleep(IDLE_S)
        await look(f"{IDLE_S:.0f} s later")
        for _, writer in standing:
            writer.transport.abort()
    return found


async def _answered_s(place: Path, key: SwarmKey, address: tuple[str, int]) -> float:
    client = LinkClient(64_000_000, Credentials(Keyring(key), PeerKey.generate(), place, time.time, 0))
    await client.open()
    began = time.perf_counter()
    await client.ask(address, GetStatus(), Status, 30)
    took = time.perf_counter() - began
    await client.close()
    return took


def _held_by(pid: int) -> tuple[int, float]:
    """Return how many files a process has open, and its memory in MB."""
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return files, pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _lines(data: Path) -> int:
    path = data / "pages.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


@click.command(help=__doc__)
@click.option("--part", "parts", type=click.Choice(PARTS), multiple=True, help="Only this. Repeatable.")
@click.option("--repetitions", type=click.IntRange(1), default=3, show_default=True, help="Repetitions of the crawl.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(parts: tuple[str, ...], repetitions: int, json_file: Path | None) -> None:
    console = Console()
    figures: dict[str, Any] = {}
    with TemporaryDirectory() as directory:
        place = Path(directory)
        if not parts or "small" in parts:
            small = [*datagrams(), *uvloop.run(connections(place))]
            figures["cpu_us"] = dict(small)
            table = Table("", "us of CPU", box=None, header_style="")
            for what, figure in small:
                table.add_row(what, f"{figure:.2f}" if figure < 10 else f"{figure:.0f}")
            console.print(table)
        if not parts or "crawl" in parts:
            figures["crawl"] = _medians(found := crawls(place, repetitions))
            _print_crawls(console, found)
        if not parts or "flood" in parts:
            floods = asyncio.run(flooded(place))
            figures["floods"] = [{"of": what, "cores": share, "pages_per_s": pages} for what, share, pages in floods]
            table = Table("100,000 a second of", "share of a core", "pages/s", box=None, header_style="")
            for what, share, pages in floods:
                table.add_row(what, f"{share:.2f}", f"{pages:.0f}")
            console.print(table)
        if not parts or "idle" in parts:
            looks = asyncio.run(idle(place))
            names = ("when", "files", "mb", "answered_ms")
            figures["idle"] = [dict(zip(names, look, strict=True)) for look in looks]
            table = Table("", "files", "MB", "a member is answered in ms", box=None, header_style="")
            for when, files, megabytes, answered_ms in looks:
                table.add_row(when, str(files), f"{megabytes:.0f}", f"{answered_ms:.0f}")
            console.print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=1) + "\n")


def _medians(found: list[CrawlFigures]) -> list[dict[str, Any]]:
    """Return the medians of the crawls of each kind."""
    medians = []
    for how in dict.fromkeys(crawl.how for crawl in found):
        runs = [crawl for crawl in found if crawl.how == how]
        figures = {
            "cpu_s": median(run.cpu_s for run in runs),
            "wall_s": median(run.wall_s for run in runs),
            "kept": median(run.kept for run in runs),
        }
        medians.append({"how": how, "pages": PAGES, **figures})
    return medians


def _print_crawls(console: Console, found: list[CrawlFigures]) -> None:
    headings = (f"{PAGES} pages, 4 peers", "CPU s (each run)", "median", "wall s, median", "by kept connections")
    table = Table(*headings, box=None, header_style="")
    medians = _medians(found)
    for kind in medians:
        runs = " ".join(f"{crawl.cpu_s:.1f}" for crawl in found if crawl.how == kind["how"])
        table.add_row(kind["how"], runs, f"{kind['cpu_s']:.1f}", f"{kind['wall_s']:.1f}", f"{kind['kept']:.1%}")
    console.print(table, f"CPU with a key / without: {medians[0]['cpu_s'] / medians[1]['cpu_s']:.2f}")


if __name__ == "__main__":
    main()
