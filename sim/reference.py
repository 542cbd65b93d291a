"""The expected result of any web and job: the crawl of one peer alone, without faults.

A user's job may have any scope, patterns and rules, so the simulator cannot compute the expected fetches by itself. The
promise it can check is that a swarm under faults has the same result as one undisturbed peer.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_settings import SiteSettings
from kadcrawl.urls import origin_of

from .job_rules import treatment
from .judge import Expected
from .judges import ROBOTS_PATH
from .loop import SimLoop, world
from .machines import Machines
from .scene import ServedWeb
from .web_server import WebServer

REQUESTS_MAX: Final = 20_000
"""More are no test any more, or a web without end."""
LOOK_S: Final = 1.0
UNASKED: Final = ("robots", "site_off")
"""The failures in the page lines of URLs that robots.txt or a rule of the job forbids."""


class ReferredWeb:
    """A web, and the result of its reference crawl (`sim.scene.KnownWeb`)."""

    trails: Sequence[Sequence[str]] = ()

    def __init__(
        self,
        web: ServedWeb,
        truth: Mapping[str, Expected],
        disallowed: Sequence[str],
        settings: SiteSettings,
    ) -> None:
        self._truth = truth
        self._disallowed = frozenset(disallowed)
        self.address = web.address
        self.answer = web.answer
        self.origins = list(dict.fromkeys(map(origin_of, [*truth, *disallowed])))
        self.treatments = {origin: treatment(settings, origin) for origin in self.origins}
        """The rule of the job for each site."""

    def truth(self, retries: int) -> Mapping[str, Expected]:
        """Return the fetches of the reference crawl. Its retries were those of the job."""
        return self._truth

    def disallowed(self) -> frozenset[str]:
        """Return the URLs that the reference crawl did not fetch because of robots.txt or a rule of the job."""
        return self._disallowed

    def delays(self, delay_s: float) -> dict[str, float]:
        """Return the delay of the job or its rule for each origin, also for sites that ask for a longer delay."""
        own_s = {origin: one.delay_s for origin, one in self.treatments.items() if one.delay_s is not None}
        return dict.fromkeys(self.origins, delay_s) | own_s


def refer(web: ServedWeb, ip: str, job: Job, limits: Limits, seed: int) -> ReferredWeb:
    """Crawl the web at this IP with one peer, and return the web with the result.

    Raises ValueError if the web has no end or no page, and RuntimeError if the peer breaks.
    """
    with tempfile.TemporaryDirectory(prefix="kadcrawl-sim-") as directory, world(seed) as loop:
        lines, server = _crawled(loop, web, ip, job, limits, seed, Path(directory))
        loop.set_exception_handler(lambda *_: None)  # What it leaves open is no fault of its own.
        loop.network.hosts.clear()
    requests = Counter(request.url for request in server.log if request.path != ROBOTS_PATH)
    truth = {
        line["url"]: Expected(line["status"], 1, requests[line["url"]])
        for line in lines
        if line["status"] is not None and requests[line["url"]]
    }
    if not truth:
        said = "; ".join(f"{line['url']}: {line.get('failed')}" for line in lines[:3])
        raise ValueError(f"one peer alone fetched nothing ({said}); give the pages of the job's seeds")
    return ReferredWeb(web, truth, [line["url"] for line in lines if line.get("failed") in UNASKED], SiteSettings(job))


def _crawled(
    loop: SimLoop, web: ServedWeb, ip: str, job: Job, limits: Limits, seed: int, directory: Path
) -> tuple[list[dict[str, Any]], WebServer]:
    """Let one peer crawl to the end. Return its page lines and the web's server."""
    server = WebServer(web)
    machines = Machines(loop, web, job=job, limits=limits, seed=seed, directory=directory, exit_when_done=True)

    async def story() -> None:
        await loop.network.host(ip).spawn(loop.create_server(server.connect, ip, 80))
        machines.start(0)
        while machines.machines[0].alive:
            await asyncio.sleep(LOOK_S)
            if len(server.log) > REQUESTS_MAX:
                raise ValueError(
                    f"one peer alone has made {REQUESTS_MAX} requests and is not done; give a web that ends, or bound "
                    "the job by max_depth or exclude"
                )

    with machines:
        loop.run_until_complete(story())
    if machines.errors:
        raise RuntimeError("one peer alone broke: " + "\n".join(machines.errors))
    return machines.machines[0].lines(), server
