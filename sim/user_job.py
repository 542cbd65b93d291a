"""`simulate`: a user's own job on simulated peers, under the faults the user names."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol

from kadcrawl.settings.job import Job

from .faults import Fault, events
from .plan import Plan
from .reference import refer
from .scene import Scene, ServedWeb
from .simulated_crawl import SimulatedCrawl, simulated_crawl
from .synthetic_web import SyntheticWeb
from .trial import LIMITS, SEEDS, WEB_ADDRESS, run_scene
from .user_web import Pages, UserWeb, served

PAGES_USUAL: Final = 80
SITES_USUAL: Final = 12
ENDLESS: Final = (
    ("recrawl_after_s", "a crawl that comes again has no end"),
    ("max_pages", "which pages a budget is spent on depends on the order"),
    ("site_pages_max", "which pages a limit leaves out depends on the order"),
    ("path_queries_max", "which pages a limit leaves out depends on the order"),
    ("proxies_from", "there are no simulated proxies"),
)
"""Fields of a job that cannot be compared with the crawl of one peer, and why."""


class Simulate(Protocol):
    """The function that the fixture `simulated_swarm` gives."""

    def __call__(
        self,
        job: Job,
        *,
        peers: int = 8,
        seed: int = 1,
        pages: Pages | int = PAGES_USUAL,
        faults: Iterable[Fault] = (),
    ) -> SimulatedCrawl:
        """Run the job, as `simulate` does."""
        ...


def simulate(
    job: Job,
    *,
    peers: int = 8,
    seed: int = 1,
    pages: Pages | int = PAGES_USUAL,
    faults: Iterable[Fault] = (),
) -> SimulatedCrawl:
    """Run a job on simulated peers in virtual time until the crawl is done, and return the outcome.

    `pages` is the web: a dict from URL to HTML or links, a function from URL to them, or the size of a synthetic web. A
    job without seeds begins at the first page of the dict, or at the seeds of the synthetic web. The same arguments
    give the same crawl. Raises ValueError for arguments that make no world, and every exception of a function of pages.
    """
    _check(job, peers)
    web, seeds = _web(pages, job, seed)
    job = replace(job, seeds=seeds)
    plan = Plan(seed, peers, events(faults, peers), delay_s=job.delay_s, history=job.history, copies=job.copies)
    try:
        known = refer(web, WEB_ADDRESS, job, LIMITS, seed)
    finally:
        if isinstance(web, UserWeb) and web.broken is not None:
            raise web.broken
    work_area = job.block_urls if job.lends_by == "level" else None
    scene = Scene(web=known, job=job, treatments=known.treatments, limits=LIMITS, work_area=work_area)
    outcome, facts = run_scene(plan, scene)
    return simulated_crawl(outcome, facts)


def _check(job: Job, peers: int) -> None:
    if peers < 1:
        raise ValueError(f"a swarm has at least one peer, not {peers}")
    reasons = [(name, why) for name, why in ENDLESS if getattr(job, name) is not None]
    if job.proxies or job.pools:
        reasons.append(("proxies", "there are no simulated proxies"))
    if job.twins != "follow":
        reasons.append(("twins", "which of two pages is the first depends on the order"))
    if any(rule.site_pages_max is not None for rule in job.sites):
        reasons.append(("site_pages_max in a rule", "which pages a limit leaves out depends on the order"))
    for name, why in reasons:
        raise ValueError(f"a job with {name} is not simulated, as {why}; use dataclasses.replace to take it out")


def _web(pages: Pages | int, job: Job, seed: int) -> tuple[ServedWeb, tuple[str, ...]]:
    """Return the web, and the seeds of a crawl of it."""
    seeds = tuple(map(served, job.seeds))
    if isinstance(pages, int):
        sites = max(1, min(SITES_USUAL, pages))
        web = SyntheticWeb(seed, sites=sites, pages=pages, seeds=min(SEEDS, sites), addresses=(WEB_ADDRESS,))
        return web, seeds or web.seeds
    if callable(pages):
        if not seeds:
            raise ValueError("a web that is a function has no first page; give the job its seeds")
        return UserWeb(pages, WEB_ADDRESS), seeds
    if not pages:
        raise ValueError("there is nothing to crawl; give at least one page")
    return UserWeb(pages, WEB_ADDRESS), seeds or (served(next(iter(pages))),)
