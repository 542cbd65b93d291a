"""This benchmark lets ten peers in one process crawl by host and by URL, undisturbed and frozen for some seconds.

    python -m scripts.bench_overload
    python -m scripts.bench_overload --hosts 100 --pages 20 --freeze-s 2 --json overload.json

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

CASES = (("host", False), ("url", False), ("host", True), ("url", True))
FREEZE_AFTER_S = 5.0
"""Seconds from the start of the peers to the freeze."""


def measure(partition: str, peers: int, hosts: int, pages: int, seconds: float, freeze_s: float) -> dict[str, Any]:
    """Return the figures of one case. `freeze_s` is 0 for a crawl without a freeze."""
    web = [sys.executable, "-m", "scripts.overload_web", "--hosts", str(hosts), "--pages", str(pages)]
    with tempfile.TemporaryDirectory() as directory, subprocess.Popen(web, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None, "its output is a pipe"
        try:
            seed = json.loads(server.stdout.readline())["seed"]
            options = ["--peers", str(peers), "--partition", partition, "--seconds", str(seconds)]
            command = [sys.executable, "-m", "scripts.overload_peers", *options, seed, str(Path(directory) / "data")]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as crawl:
                if freeze_s:
                    time.sleep(FREEZE_AFTER_S)
                    crawl.send_signal(signal.SIGSTOP)
                    time.sleep(freeze_s)
                    crawl.send_signal(signal.SIGCONT)
                output, _ = crawl.communicate()
            with urllib.request.urlopen(f"{seed}count") as answer:
                counts = json.load(answer)
        finally:
            server.terminate()
    twice = counts["fetched"] - counts["pages"]
    return {"partition": partition, "freeze_s": freeze_s, **json.loads(output), **counts, "twice": twice}


@click.command(help=__doc__)
@click.option("--peers", default=10, show_default=True)
@click.option("--hosts", default=100, show_default=True)
@click.option("--pages", default=20, show_default=True, help="Pages of each host.")
@click.option("--seconds", default=90.0, show_default=True, help="Longest time of one crawl.")
@click.option("--freeze-s", default=2.0, show_default=True)
@click.option("--json", "report", type=click.Path(path_type=Path), help="Write the figures here.")
def main(peers: int, hosts: int, pages: int, seconds: float, freeze_s: float, report: Path | None) -> None:
    figures = []
    for partition, is_frozen in CASES:
        figures.append(measure(partition, peers, hosts, pages, seconds, freeze_s if is_frozen else 0.0))
        print(json.dumps(figures[-1]), flush=True)
    if report is not None:
        report.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(not all(one["ended"] for one in figures))


if __name__ == "__main__":
    main()
