"""The outcome of a simulated crawl, in the form for a user's test."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from .judges import ROBOTS_PATH, Facts
from .trial import TrialOutcome


class Fetched(NamedTuple):
    """A request for a page as the web's servers saw it. Requests for robots.txt are left out."""

    url: str
    status: int
    peer: int
    """The number of the peer that asked."""
    at_s: float
    """Virtual seconds since the beginning."""
    whole: bool
    """False if the answer never arrived whole, as when its peer was killed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCrawl:
    """The crawl of a swarm under faults, compared with one peer that crawled alone and undisturbed."""

    fetched: tuple[Fetched, ...]
    """All requests for pages, in their order."""
    statuses: dict[str, int]
    """URL -> status, of each page that one undisturbed peer fetches."""
    lost: list[str]
    """URLs of those pages that the swarm did not finish with the same status."""
    fetched_twice: list[str]
    """URLs that were answered whole more often than one undisturbed peer had to ask for them."""
    verdicts: dict[str, list[str]]
    """Broken promises: the name of the judge -> its violations. Empty if every promise was kept."""
    virtual_s: float
    """Virtual seconds of the crawl."""
    messages: int
    """Datagrams and connections' messages between peers and web that arrived."""
    trace: str
    """A hash of all arrivals on the network. The same arguments give the same hash."""

    def __str__(self) -> str:
        verdict = "every promise kept" if not self.verdicts else f"broken: {', '.join(self.verdicts)}"
        return (
            f"{len(self.statuses)} pages in {self.virtual_s:.1f} virtual seconds, {len(self.fetched)} requests, "
            f"{len(self.lost)} lost, {len(self.fetched_twice)} fetched twice; {verdict}"
        )


def simulated_crawl(outcome: TrialOutcome, facts: Facts) -> SimulatedCrawl:
    """Return the outcome of a trial in the form for a user's test."""
    fetched = tuple(
        Fetched(one.url, one.status, one.machine, one.at_s, place not in facts.cut)
        for place, one in enumerate(facts.fetches)
        if one.path != ROBOTS_PATH
    )
    ended = {(line.url, line.status) for line in facts.lines}
    answered = Counter(one.url for one in fetched if one.whole)
    return SimulatedCrawl(
        fetched=fetched,
        statuses={url: page.status for url, page in facts.truth.items()},
        lost=sorted(url for url, page in facts.truth.items() if (url, page.status) not in ended),
        fetched_twice=sorted(
            url for url, times in answered.items() if times > (facts.truth[url].fetches if url in facts.truth else 1)
        ),
        verdicts=outcome.violations,
        virtual_s=outcome.virtual_s,
        messages=outcome.messages,
        trace=outcome.trace,
    )
