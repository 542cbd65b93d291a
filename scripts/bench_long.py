"""This benchmark lets two peers crawl a synthetic web for long, and shows what a page costs as the crawl grows.

    python -m scripts.bench_long
    python -m scripts.bench_long --pages 1000000 --hosts 1200 --host-pages 10000 --minutes 300

The crawl ends at `--pages`, or after `--minutes` at the latest. Each row has the CPU of all peers for 1,000 pages
since the row before, their memory, the largest WAL, and the bytes of the journals for each URL that the swarm knows.
Then the peers are stopped, started again, and killed: one peer of the swarm while the other goes on, and a peer alone.
The figures are the seconds until a page line follows, and until each stage before it: the journal is open, the peer has
entered its swarm, its first cell is open, and its first request is made. CPU seconds tell more than seconds where the
machine has other work.

Tests: tests/scripts/test_bench_long.py
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

KADCRAWL: Final = str(Path(sys.executable).with_name("kadcrawl"))
POLL_S: Final = 0.25
FIRST_PAGE_MAX_S: Final = 120.0
STOP_MAX_S: Final = 200.0
STEADY_PAGES: Final = 0.1
"""Share of the pages after which a page should cost the same."""
AIMS: Final = {"stop": 3.0, "alone": 2.0, "in a swarm": 3.0}
"""The most seconds of a stop, and until the first page."""
STAGES: Final = {"opened_s": "peer.opened", "entered_s": "peer.begun", "cell_s": "cell.first_opened"}
"""The stages of a start, and the lines of the peer's log that end them."""
LINE_MAX: Final = 16_384
"""More bytes than the last line of a page log has."""
TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def served(hosts: int, pages: int) -> Iterator[str]:
    """Serve the web, and give its seed."""
    web = [sys.executable, "-m", "scripts.long_web", "--hosts", str(hosts), "--pages", str(pages)]
    with subprocess.Popen(web, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None, "its output is a pipe"
        try:
            yield json.loads(server.stdout.readline())["seed"]
        finally:
            server.terminate()


class LongPeer:
    """One peer in a process of its own. A peer that is started again is another process."""

    def __init__(self, directory: Path, arguments: list[str]) -> None:
        self.directory = directory
        self._pages = directory / "pages.jsonl"
        self._pages_from = self._pages.stat().st_size if self._pages.exists() else 0
        self.began, self.began_at = time.monotonic(), time.time()
        command = [KADCRAWL, *arguments, "--data", str(directory), "--allow-network", "127.0.0.0/8"]
        self._said = open(f"{directory}.said", "ab")  # noqa: SIM115 -- closed with the process
        self.process = subprocess.Popen(command, stdout=self._said, stderr=self._said)

    def cpu_s(self) -> float:
        """Return the CPU seconds so far, 0 after the end."""
        with suppress(OSError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICKS
        return 0.0

    def rss_mb(self) -> float:
        """Return the resident memory in megabytes, 0 after the end."""
        with suppress(OSError):
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE / 1e6
        return 0.0

    def size_of(self, suffix: str) -> int:
        """Return the bytes of a file of the journal."""
        with suppress(FileNotFoundError):
            return Path(f"{self.directory}/peer.sqlite{suffix}").stat().st_size
        return 0

    def first_page(self) -> dict[str, float]:
        """Wait for a page that this process fetched. Return the seconds since the start, by stage, and the CPU seconds.

        Raises TimeoutError.
        """
        while last_fetch(self._pages) < self.began_at:
            if time.monotonic() - self.began > FIRST_PAGE_MAX_S or self.process.poll() is not None:
                raise TimeoutError(f"{self.directory.name} fetched no page within {FIRST_PAGE_MAX_S:g} s")
            time.sleep(0.02)
        figures = {"seconds": round(time.monotonic() - self.began, 2), "cpu_s": round(self.cpu_s(), 2)}
        log = (self.directory / "peer.log").read_text()
        fetched_at = first_fetch(self._pages, self._pages_from, self.began_at)
        reached = {**stages(log, self.began_at), "request_s": fetched_at}
        return {**figures, **{name: round(at - self.began_at, 2) for name, at in reached.items()}}

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self._said.close()

    def address(self) -> str:
        """Return HOST:PORT, once the peer has said it."""
        while not (self.directory / "address").exists():
            time.sleep(0.05)
        return (self.directory / "address").read_text().strip()


def last_fetch(log: Path) -> float:
    """Return the wall-clock second of the last fetch in a page log, 0 for a log without lines.

    A peer that starts again first writes lines that its journal has, of pages fetched before.
    """
    with suppress(FileNotFoundError), log.open("rb") as lines:
        lines.seek(max(0, lines.seek(0, os.SEEK_END) - LINE_MAX))
        whole = lines.read().rpartition(b"\n")[0].rpartition(b"\n")[2]
        if whole:
            return datetime.fromisoformat(json.loads(whole)["fetched_at"]).timestamp()
    return 0.0


def first_fetch(log: Path, start: int, began_at: float) -> float:
    """Return the wall-clock second of the first request since `began_at`, of the lines from byte `start` on."""
    with log.open("rb") as lines:
        lines.seek(start)
        whole = lines.read().rpartition(b"\n")[0].split(b"\n")
    fetched = [datetime.fromisoformat(json.loads(line)["fetched_at"]).timestamp() for line in whole]
    return min(at for at in fetched if at >= began_at)


def stages(log: str, began_at: float) -> dict[str, float]:
    """Return the wall-clock second of each stage since `began_at` that a peer's log names."""
    reached: dict[str, float] = {}
    for line in log.splitlines():
        words = line.split(maxsplit=5)
        name = next((name for name, event in STAGES.items() if words[4:5] == [event]), None)
        if name is not None:
            at = datetime.strptime(" ".join(words[:2]), "%Y-%m-%d %H:%M:%S,%f").timestamp()  # noqa: DTZ007 -- local
            if at >= began_at:
                reached.setdefault(name, at)
    return reached


def job(seed: str) -> list[str]:
    """Return the arguments of a first peer."""
    return ["start", seed, "--delay", "0", "--scope", "any", "--max-depth", "1000000"]


def joined(seed: str, data: Path, peers: int) -> list[LongPeer]:
    """Start so many peers."""
    first = LongPeer(data / "peer-1", job(seed))
    bootstrap = first.address()
    return [
        first,
        *(LongPeer(data / f"peer-{n}", ["join", "--bootstrap", bootstrap]) for n in range(2, peers + 1)),
    ]


def stopped(peers: list[LongPeer]) -> dict[str, float]:
    """Stop the whole swarm as a person does, and return the seconds until the last process has ended."""
    began = time.monotonic()
    subprocess.run([KADCRAWL, "stop", "--data", str(peers[0].directory)], check=True, stdout=subprocess.DEVNULL)
    for peer in peers:
        with suppress(subprocess.TimeoutExpired):
            peer.process.wait(STOP_MAX_S)
    return {"seconds": round(time.monotonic() - began, 2)}


def counts(seed: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{seed}count") as answer:
        found: dict[str, int] = json.load(answer)
    return found


def known(peer: LongPeer) -> int:
    """Return how many URLs the swarm knows, or 0 if the peer does not say."""
    command = [KADCRAWL, "status", "--data", str(peer.directory), "--json"]
    with suppress(subprocess.TimeoutExpired, json.JSONDecodeError):
        status = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=30).stdout)
        return int(status.get("urls_found") or 0)
    return 0


def crawl(seed: str, peers: list[LongPeer], pages: int, minutes: float, rows: int) -> list[dict[str, float]]:
    """Let the peers crawl, and return the rows of the curve."""
    began, curve, wal = time.monotonic(), [], 0
    last_pages, last_cpu = 0, 0.0
    while time.monotonic() < began + 60 * minutes and last_pages < pages:
        next_pages = last_pages + pages / rows
        next_at = min(began + 60 * minutes, time.monotonic() + 60 * minutes / rows * 4)
        while (fetched := counts(seed)["fetched"]) < next_pages and time.monotonic() < next_at:
            wal = max(wal, *(peer.size_of("-wal") for peer in peers))
            time.sleep(POLL_S)
        cpu, found = sum(peer.cpu_s() for peer in peers), known(peers[0])
        if fetched > last_pages:
            curve.append(
                {
                    "seconds": round(time.monotonic() - began, 1),
                    "pages": fetched,
                    "known": found,
                    "cpu_s_per_1000": round((cpu - last_cpu) * 1000 / (fetched - last_pages), 3),
                    "rss_mb": round(sum(peer.rss_mb() for peer in peers), 1),
                    "wal_mb": round(wal / 1e6, 2),
                    "journal_bytes_per_url": round(
                        sum(peer.size_of("") + peer.size_of("-wal") for peer in peers) / max(1, found), 1
                    ),
                }
            )
            print(json.dumps(curve[-1]), flush=True)
        elif any(peer.process.poll() is not None for peer in peers):
            raise RuntimeError(f"a peer has ended; see {peers[0].directory.parent}")
        last_pages, last_cpu = fetched, cpu
    return curve


def restarts(peers: list[LongPeer], times: int) -> list[dict[str, float]]:
    """Kill the last peer, and start it again on its directory while the others go on, so many times."""
    found = []
    for _ in range(times):
        peers[-1].kill()
        peers[-1] = LongPeer(peers[-1].directory, ["start"])
        found.append(peers[-1].first_page())
        print(json.dumps({"peers": len(peers), **found[-1]}), flush=True)
        time.sleep(2.0)
    return found


def steady(curve: list[dict[str, float]], name: str) -> float:
    """Return the share by which the last third of the rows exceeds the rows after the begin, 0 for too few rows."""
    later = [row[name] for row in curve if row["pages"] >= STEADY_PAGES * curve[-1]["pages"]]
    third = len(later) // 3
    if not third:
        return 0.0
    return round(sum(later[-third:]) / sum(later[:third]) - 1.0, 3)


@click.command(help=__doc__)
@click.option("--pages", type=click.IntRange(100), default=60_000, show_default=True, help="Pages to fetch.")
@click.option("--hosts", type=click.IntRange(1), default=200, show_default=True)
@click.option("--host-pages", type=click.IntRange(10), default=10_000, show_default=True, help="Pages of each host.")
@click.option("--minutes", type=float, default=8.0, show_default=True, help="Longest time of the crawl by two peers.")
@click.option("--alone-pages", type=click.IntRange(10), default=10_000, show_default=True, help="Pages of one peer.")
@click.option("--times", type=click.IntRange(1), default=4, show_default=True, help="Restarts of each kind.")
@click.option("--rows", type=click.IntRange(1), default=20, show_default=True, help="Rows of the curve.")
@click.option("--json", "report", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here.")
def main(
    pages: int,
    hosts: int,
    host_pages: int,
    minutes: float,
    alone_pages: int,
    times: int,
    rows: int,
    report: Path | None,
) -> None:
    figures: dict[str, Any] = {"hosts": hosts, "host_pages": host_pages}
    with tempfile.TemporaryDirectory(prefix="kadcrawl-long-") as name, served(hosts, host_pages) as seed:
        peers = joined(seed, Path(name), 2)
        try:
            figures["curve"] = crawl(seed, peers, pages, minutes, rows)
            figures["in a swarm"] = restarts(peers, times)
            figures["stop"] = [stopped(peers)]
            figures["twice"] = counts(seed)["twice"]
        finally:
            for peer in peers:
                peer.kill()
    with tempfile.TemporaryDirectory(prefix="kadcrawl-long-") as name, served(hosts, host_pages) as seed:
        peers = joined(seed, Path(name), 1)
        try:
            figures["curve alone"] = crawl(seed, peers, alone_pages, minutes / 3, 2)
            figures["alone"] = restarts(peers, times)
            figures["stop"].append(stopped(peers))
        finally:
            peers[0].kill()
    figures["cpu_growth"] = steady(figures["curve"], "cpu_s_per_1000")
    figures["rss_growth"] = steady(figures["curve"], "rss_mb")
    if report is not None:
        report.write_text(json.dumps(figures, indent=1) + "\n")
    missed = [what for what, most in AIMS.items() if max(one["seconds"] for one in figures[what]) > most]
    print(f"cpu {figures['cpu_growth']:+.0%}, memory {figures['rss_growth']:+.0%} after the first tenth", flush=True)
    print(f"MISS {', '.join(missed)}" if missed else "ok   stops and restarts are within their aims")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
