"""The benchmark's distributed opponent: the lean Scrapy spider with scrapy-redis, two workers, and a Redis of its own.

Redis has the queue and the filter of all URLs seen, as scrapy-redis uses it. It listens on a Unix socket and saves
nothing. A worker ends when it has had nothing to do for a while. Runs in the environment of `p_scrapy.py`.

``python scripts/p_scrapy_redis.py --redis PROGRAM --directory DIR URL...`` prints a JSON object: pages.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from p_scrapy import SETTINGS, lean_spider  # type: ignore[import-not-found, unused-ignore]

WORKERS = 2
IDLE_S = 2.0
"""Seconds without work after which a worker ends."""
STARTED_S = 10.0
"""Seconds in which Redis must have started."""


def work(seeds: list[str], socket: str) -> None:
    """Crawl as one of the workers, and print the number of pages."""
    from scrapy import signals  # type: ignore[import-not-found, unused-ignore]
    from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found, unused-ignore]
    from scrapy.exceptions import DontCloseSpider  # type: ignore[import-not-found, unused-ignore]

    done: Counter[str] = Counter()
    lean = lean_spider(seeds, done)

    class Shared(lean):  # type: ignore[misc, valid-type, unused-ignore]
        name = "lean"
        last: tuple[int, float]
        """Pages at the last look, and the instant since which there are so many."""

        @classmethod
        def from_crawler(cls, crawler: Any, *arguments: Any, **options: Any) -> Any:
            spider = super().from_crawler(crawler, *arguments, **options)
            spider.last = (0, time.monotonic())
            crawler.signals.connect(spider.stay_a_while, signal=signals.spider_idle)
            return spider

        def stay_a_while(self, spider: Any) -> None:
            pages, since = self.last
            if pages != done["pages"]:
                since = time.monotonic()
            self.last = (done["pages"], since)
            if time.monotonic() - since < IDLE_S:
                raise DontCloseSpider

    settings = SETTINGS | {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,  # Else the worker that ends first takes the queue along.
        "REDIS_URL": f"unix://{socket}",
    }
    process = CrawlerProcess(settings)
    process.crawl(Shared)
    process.start()
    print(json.dumps({"pages": done["pages"]}))


def lead(program: str, directory: Path, seeds: list[str]) -> int:
    """Run Redis and the workers to the end. Return the exit code."""
    socket = directory / "redis.sock"
    redis = [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(directory)]
    with subprocess.Popen(redis, stdout=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + STARTED_S
            while not socket.exists() and server.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            worker = [sys.executable, __file__, "--worker", str(socket), *seeds]
            workers = [subprocess.Popen(worker, stdout=subprocess.PIPE, text=True) for _ in range(WORKERS)]
            said = [one.communicate()[0] for one in workers]
        finally:
            server.terminate()
    if any(one.returncode for one in workers):
        return 1
    print(json.dumps({"pages": sum(json.loads(one)["pages"] for one in said)}))
    return 0


def main() -> None:
    """Crawl to the end and print the figures."""
    parser = argparse.ArgumentParser(description="Crawl URL... with scrapy-redis.")
    parser.add_argument("--redis", metavar="PROGRAM")
    parser.add_argument("--directory", type=Path, default=Path())
    parser.add_argument("--worker", metavar="SOCKET", help="be a worker of the Redis on this socket")
    parser.add_argument("seeds", nargs="+", metavar="URL")
    options = parser.parse_args()
    if options.worker:
        work(options.seeds, options.worker)
    else:
        sys.exit(lead(options.redis, options.directory.absolute(), options.seeds))


if __name__ == "__main__":
    main()
