"""This benchmark lets ten peers in one process crawl by host and by URL, undisturbed, and stopped by SIGSTOP.

    python -m scripts.bench_overload
    python -m scripts.bench_overload --hosts 100 --pages 20 --json overload.json

The web is in another process, on loopback. Each case ends after `--seconds` at the latest, and says whether the crawl
was done by then. CPU seconds tell more than seconds where the machine has other work.

Tests: tests/scripts/test_bench_overload.py
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import click

CASES = (("host", 0.0), ("url", 0.0), ("host", 2.0), ("url", 2.0), ("host", 30.0), ("url", 30.0))
"""(partition, seconds for which the process of the peers is stopped)."""
STOPPED_AFTER = 1 / 8
"""Share of the pages that the web has been asked for when the process is stopped."""
LOOK_S = 0.1
REPEATED_MAX = 0.005
"""Share of the pages that may be fetched twice."""


def _wait_until_asked_for(pages: int, seed: str, crawl: "subprocess.Popen[bytes]") -> None:
    """Wait until the web has been asked for so many pages, or the crawl has ended."""
    while crawl.poll() is None and _counts(seed)["pages"] < pages:
        time.sleep(LOOK_S)


def _counts(seed: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{seed}count") as answer:
        counts: dict[str, int] = json.load(answer)
    return counts


def measure(partition: str, peers: int, hosts: int, pages: int, seconds: float, freeze_s: float) -> dict[str, Any]:
    """Return the figures of one case. `freeze_s` is 0 for a crawl without a stop."""
    web = [sys.executable, "-m", "scripts.overload_web", "--hosts", str(hosts), "--pages", str(pages)]
    with tempfile.TemporaryDirectory() as directory, subprocess.Popen(web, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None, "its output is a pipe"
        try:
            seed = json.loads(server.stdout.readline())["seed"]
            options = ["--peers", str(peers), "--partition", partition, "--seconds", str(seconds)]
            command = [sys.executable, "-m", "scripts.overload_peers", *options, seed, str(Path(directory) / "data")]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as crawl:
                if freeze_s:
                    _wait_until_asked_for(round(hosts * pages * STOPPED_AFTER), seed, crawl)
                    crawl.send_signal(signal.SIGSTOP)
                    time.sleep(freeze_s)
                    crawl.send_signal(signal.SIGCONT)
                output, _ = crawl.communicate()
            counts = _counts(seed)
        finally:
            server.terminate()
    twice = counts["fetched"] - counts["pages"]
    return {"partition": partition, "freeze_s": freeze_s, **json.loads(output), **counts, "twice": twice}


@click.command(help=__doc__)
@click.option("--peers", default=10, show_default=True)
@click.option("--hosts", default=100, show_default=True)
@click.option("--pages", default=200, show_default=True, help="Pages of each host.")
@click.option("--seconds", default=180.0, show_default=True, help="Longest time of one crawl.")
@click.option("--json", "report", type=click.Path(path_type=Path), help="Write the figures here.")
def main(peers: int, hosts: int, pages: int, seconds: float, report: Path | None) -> None:
    cases = []
    for partition, freeze_s in CASES:
        cases.append(measure(partition, peers, hosts, pages, seconds, freeze_s))
        print(json.dumps(cases[-1]), flush=True)
    if report is not None:
        figures = {"peers": peers, "hosts": hosts, "pages": hosts * pages, "cases": cases}
        report.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(not all(one["ended"] and one["twice"] <= REPEATED_MAX * one["pages"] for one in cases))


if __name__ == "__main__":
    main()
