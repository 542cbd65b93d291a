"""This benchmark measures what the dashboard costs the peer that serves it, in CPU seconds of its process.

    python -m scripts.bench_web
    python -m scripts.bench_web --peers 10 --seconds 5

One process has all peers but one, and crawls sites of its own on loopback, one page a second of each. Another process
joins with --web and is measured, in turns with viewers and without. The difference is the price of the viewers. Two
more peers that have nothing to do, one with --web and one without, tell what it costs while nobody looks.

Where Chromium, Node and playwright-core are installed (`make test-web` installs the last), it also shows recordings of
simulated swarms (sim/dashboard_recording.py), and the time that the page takes for each change: of a script and for
layouts.

Tests: tests/scripts/test_bench_web.py
"""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import aiohttp
import click
from aiohttp import web

from kadcrawl import Config, Job, Peer
from kadcrawl.cli.commands.web import read_dashboard
from kadcrawl.system.clock import wall
from kadcrawl.system.file_names import DASHBOARD
from kadcrawl.web.tokens import NONCE_BYTES, make_token
from scripts.browser.chromium import browsing, lacks
from scripts.browser.frames import Frame, replay_frames
from sim.dashboard_recording import read_recording

KADCRAWL = str(Path(sys.executable).with_name("kadcrawl"))
SITES = 30
"""Sites that the swarm crawls, each with a page a second."""
UP_TIMEOUT_S = 180.0
SETTLE_S = 5.0
"""Time for a process to settle before it is measured."""
TURNS = 3
"""Turns with viewers, and as many without."""
IDLE_SHARE_MAX = 0.01
"""The most of a core that a dashboard may cost while nobody looks."""
VIEWED_SHARE_MAX = 0.03
"""The most of a core that five viewers may cost at 50 peers."""
SHOWN_PEERS = (50, 200, 1000)
"""Sizes of the simulated swarms that the page shows."""
REPLAYS = 5
"""Times that each recording is shown."""
ONE_MACHINE = ("--insecure", "--listen", "127.0.0.1:0", "--allow-network", "127.0.0.0/8")


@dataclass(frozen=True, slots=True)
class FrameFigures:
    """What the page took to show one change of a simulated swarm."""

    peers: int
    changes: int
    """Changes measured."""
    script_ms: float
    """Median time of the scripts for one change."""
    layout_ms: float
    """Median time for layouts and styles."""
    most_ms: float
    """The longest time of scripts, layouts and styles for one change."""
    layouts: int
    """The most layouts for one change."""
    touched: int
    """The most elements, attributes and texts that one change touched."""


@dataclass(frozen=True, slots=True)
class WebFigures:
    """The figures of the dashboard."""

    peers: int
    viewers: int
    seconds: float
    """Seconds of each turn."""
    idle_share: float
    """Part of a core of an idle peer with a dashboard that nobody looks at."""
    idle_share_without: float
    """Part of a core of an idle peer without a dashboard."""
    share: float
    """Part of a core of a peer in a crawl, while nobody looks at its dashboard."""
    share_viewed: float
    """Part of a core of the same peer with viewers."""
    events_per_s: float
    """Events that each viewer gets in a second."""
    kb_per_s: float
    """Kilobytes that each viewer gets in a second."""
    frames: tuple[FrameFigures, ...] = ()
    """For each size of a simulated swarm. Empty without a browser."""

    @property
    def misses(self) -> list[str]:
        """The aims that were missed."""
        idle, viewed = self.idle_share - self.idle_share_without, self.share_viewed - self.share
        return [
            *([f"an idle dashboard costs {idle:.2%} of a core"] if idle >= IDLE_SHARE_MAX else []),
            *([f"{self.viewers} viewers cost {viewed:.2%} of a core"] if viewed >= VIEWED_SHARE_MAX else []),
        ]


@dataclass(slots=True)
class Received:
    """What all viewers have received."""

    events: int = 0
    bytes: int = 0


@click.command(help=__doc__)
@click.option("--peers", default=50, show_default=True)
@click.option("--viewers", default=5, show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="Seconds of each turn.")
@click.option("--frames", default=SHOWN_PEERS, show_default=True, multiple=True, help="Peers of a swarm to be shown.")
@click.option("--json", "as_json", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here.")
@click.option("--swarm", type=click.Path(path_type=Path, file_okay=False), hidden=True)
def main(
    peers: int, viewers: int, seconds: float, frames: Sequence[int], as_json: Path | None, swarm: Path | None
) -> None:
    """Measure and print the figures."""
    if swarm is not None:
        asyncio.run(run_swarm(swarm, peers))
        return
    with TemporaryDirectory() as directory:
        figures = measure(Path(directory), peers, viewers, seconds)
        figures = replace(figures, frames=frames_of_all(Path(directory), frames))
    click.echo(f"an idle peer: {figures.idle_share_without:.2%} of a core, with a dashboard {figures.idle_share:.2%}")
    click.echo(f"in a crawl of {peers} peers: {figures.share:.2%}, with {viewers} viewers {figures.share_viewed:.2%}")
    click.echo(f"each viewer gets {figures.events_per_s:.1f} events and {figures.kb_per_s:.1f} kB a second")
    for one in figures.frames:
        click.echo(
            f"the page with {one.peers} peers: {one.script_ms:.1f} ms of scripts and {one.layout_ms:.1f} ms of layout "
            f"for a change, {one.most_ms:.1f} ms at most; {one.layouts} layouts, {one.touched} changes of elements"
        )
    if as_json is not None:
        as_json.write_text(json.dumps(asdict(figures), indent=1) + "\n")
    for miss in figures.misses:
        click.echo(f"missed: {miss}", err=True)
    sys.exit(1 if figures.misses else 0)


def frames_of_all(directory: Path, sizes: Sequence[int]) -> tuple[FrameFigures, ...]:
    """Return the figures of the page for simulated swarms of these sizes, or none without a browser."""
    if missing := lacks():
        click.echo(f"the page is not measured, as that needs {missing}", err=True)
        return ()
    return tuple(frames_of(directory / f"frames-{peers}", peers) for peers in sizes)


def frames_of(directory: Path, peers: int) -> FrameFigures:
    """Return the figures of the page for a simulated swarm of this size. Its world is a process of its own."""
    directory.mkdir()
    file = directory / "looks.json"
    record = [sys.executable, "-m", "sim.dashboard_recording", "--peers", str(peers), str(file)]
    subprocess.run(record, check=True, stdin=subprocess.DEVNULL)
    looks = read_recording(file)

    async def shown() -> list[Frame]:
        async with browsing() as browser:
            return [frame for _ in range(REPLAYS) for frame in await replay_frames(browser, looks, directory)]

    frames = asyncio.run(shown())
    return FrameFigures(
        peers=peers,
        changes=len(frames),
        script_ms=median(frame.script_ms for frame in frames),
        layout_ms=median(frame.layout_ms for frame in frames),
        most_ms=max(frame.script_ms + frame.layout_ms for frame in frames),
        layouts=max(frame.layouts for frame in frames),
        touched=max(frame.touched for frame in frames),
    )


def measure(directory: Path, peers: int, viewers: int, seconds: float) -> WebFigures:
    """Return the figures of a swarm below this directory."""
    with (
        process([KADCRAWL, "start", *ONE_MACHINE, "--data", str(directory / "plain")]) as plain,
        process([KADCRAWL, "start", *ONE_MACHINE, "--data", str(directory / "idle"), "--web", "127.0.0.1:0"]) as idle,
    ):
        wait_for(directory / "plain" / "address", plain)
        wait_for(directory / "idle" / DASHBOARD, idle)
        time.sleep(SETTLE_S)
        idle_shares = shares_of([plain.pid, idle.pid], seconds)
    told = directory / "told"
    swarm = [sys.executable, "-m", "scripts.bench_web", "--swarm", str(directory), "--peers", str(peers - 1)]
    with process(swarm) as others:
        address = wait_for(told, others).read_text()
        join = [KADCRAWL, "join", *ONE_MACHINE, "--bootstrap", address, "--data", str(directory / "watched")]
        with process([*join, "--web", "127.0.0.1:0"]) as watched:
            secret = wait_for(directory / "watched" / DASHBOARD, watched)
            time.sleep(SETTLE_S)
            off, on, received = asyncio.run(in_turns(secret, watched.pid, viewers, seconds))
    return WebFigures(
        peers=peers,
        viewers=viewers,
        seconds=seconds,
        idle_share=idle_shares[1],
        idle_share_without=idle_shares[0],
        share=off,
        share_viewed=on,
        events_per_s=received.events / viewers / TURNS / seconds,
        kb_per_s=received.bytes / viewers / TURNS / seconds / 1000,
    )


async def in_turns(secret: Path, pid: int, viewers: int, seconds: float) -> tuple[float, float, Received]:
    """Return the parts of a core of a process without viewers and with them, and what the viewers received."""
    found = read_dashboard(secret)
    off = on = 0.0
    received = Received()
    for _ in range(TURNS):
        off += (await asyncio.to_thread(shares_of, [pid], seconds))[0]
        async with aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True), read_bufsize=2**22, headers={"Origin": found.url.rstrip("/")}
        ) as session:
            token = make_token(found.secret, wall(), secrets.token_bytes(NONCE_BYTES))
            async with session.post(f"{found.url}session", data=json.dumps({"token": token})) as answer:
                answer.raise_for_status()
            tasks = [asyncio.create_task(look(session, f"{found.url}events", received)) for _ in range(viewers)]
            on += (await asyncio.to_thread(shares_of, [pid], seconds))[0]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return off / TURNS, on / TURNS, received


async def look(session: aiohttp.ClientSession, url: str, received: Received) -> None:
    """Read the events of one viewer, until cancelled."""
    async with session.get(url, timeout=aiohttp.ClientTimeout(total=None)) as answer:
        async for line in answer.content:
            received.bytes += len(line)
            received.events += line.startswith(b"event:")


def shares_of(pids: Sequence[int], seconds: float) -> list[float]:
    """Return the part of a core that each process takes in this time."""
    before, began = [cpu_s(pid) for pid in pids], time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    return [(cpu_s(pid) - earlier) / elapsed for pid, earlier in zip(pids, before, strict=True)]


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def process(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Give a running process, and end it."""
    one = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        yield one
    finally:
        one.send_signal(signal.SIGKILL)
        one.wait()


def wait_for(file: Path, by: subprocess.Popen[bytes]) -> Path:
    """Return a file once a process has written it."""
    give_up_at = time.monotonic() + UP_TIMEOUT_S
    while not file.exists():
        if by.poll() is not None or time.monotonic() > give_up_at:
            raise SystemExit(f"bench_web: no {file.name} of {by.args!r}")
        time.sleep(0.1)
    return file


async def run_swarm(directory: Path, peers: int) -> None:
    """Run the other peers of the swarm and its sites, tell the address of the first, and crawl until killed."""

    async def page(request: web.BaseRequest) -> web.Response:
        number = int(request.path.strip("/") or 0) if request.path != "/robots.txt" else 0
        links = "".join(f'<a href="/{2 * number + child}">x</a>' for child in (1, 2))
        return web.Response(text=f"<html><body>{links}</body></html>", content_type="text/html")

    async with AsyncExitStack() as stack:
        loop, port = asyncio.get_running_loop(), 0
        for number in range(SITES):
            server = await loop.create_server(web.Server(page), f"127.0.1.{number + 1}", port)
            port = server.sockets[0].getsockname()[1]
        first: Peer | None = None
        for number in range(peers):
            config = Config(data=directory / f"peer-{number}", port=0, allow_networks=("127.0.0.0/8",))
            job = Job(delay_s=1.0, scope="any") if first is None else None
            peer = await stack.enter_async_context(Peer(config, job))
            if first is None:
                first = peer
                await peer.begin()
            else:
                await peer.join([first.listens_at])
        assert first is not None, "a swarm has a peer"
        await first.crawl([f"http://127.0.1.{number + 1}:{port}/0" for number in range(SITES)])
        host, bound = first.listens_at
        (directory / "told.new").write_text(f"{host}:{bound}")
        (directory / "told.new").replace(directory / "told")
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
