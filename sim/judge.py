"""The judge of a crawl: compares a web's own access log with the requests of a correct crawler. No I/O.

The judge stands outside the crawler: it shares no code with kadcrawl and trusts no statement of a peer. Its input is
one log of the whole web, from any server. Its output is one `Verdict`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Access(NamedTuple):
    """One request as the server saw it."""

    time: float
    """Seconds on the server's clock."""
    site: str
    """Origin: ``http://host:port``."""
    path: str
    """Path and query as they were sent."""
    status: int
    user_agent: str
    asker: str = ""
    """Address it came from, where that matters."""

    @property
    def url(self) -> str:
        return self.site + self.path


class Expected(NamedTuple):
    """The result of one URL in a correct crawl."""

    status: int
    """The status of the last answer."""
    fetches_min: int
    fetches_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The faults of a crawl as sentences. A clean crawl has none."""

    missing: tuple[str, ...]
    """URLs never fetched, or left before their last answer."""
    extra: tuple[str, ...]
    """URLs fetched that no allowed link leads to."""
    duplicates: tuple[str, ...]
    """URLs fetched more often than they may be."""
    hurried: tuple[str, ...]
    """Requests that came before their site's delay was over."""
    disobedient: tuple[str, ...]
    """Requests that robots.txt forbids, or that came before it was asked."""

    @property
    def clean(self) -> bool:
        return not any((self.missing, self.extra, self.duplicates, self.hurried, self.disobedient))


def judge(
    log: Sequence[Access],
    truth: Mapping[str, Expected],
    disallowed: Collection[str] = (),
    delays: Mapping[str, float] | None = None,
    slack_s: float = 0.05,
) -> Verdict:
    """Return the verdict on a crawl that is over.

    `truth` maps each URL a correct crawler fetches, robots.txt included, to what it gets; `disallowed` are
    the URLs robots.txt forbids; `delays` gives seconds between requests for each site that has a delay.
    `slack_s` is how late the server's clock may have read one request.
    """
    fetches = Counter(access.url for access in log)
    last_status = {access.url: access.status for access in log}
    forbidden = frozenset(disallowed)
    missing = [
        url if url not in fetches else f"{url} ended with {last_status[url]}, not {expected.status}"
        for url, expected in truth.items()
        if fetches[url] < expected.fetches_min or (url in fetches and last_status[url] != expected.status)
    ]
    duplicates = [
        f"{url} {count} times" for url, count in fetches.items() if url in truth and count > truth[url].fetches_max
    ]
    return Verdict(
        missing=tuple(missing),
        extra=tuple(url for url in fetches if url not in truth and url not in forbidden),
        duplicates=tuple(duplicates),
        hurried=tuple(_hurried(log, delays or {}, slack_s)),
        disobedient=tuple(_disobedient(log, forbidden)),
    )


def _hurried(log: Sequence[Access], delays: Mapping[str, float], slack_s: float) -> list[str]:
    """Compare every request with all earlier requests of its site: n requests later must be n delays later.

    A single request may be early by the slack, because clocks differ. A crawler that is always a little too fast
    gathers a lead and is found out.
    """
    times: defaultdict[str, list[Access]] = defaultdict(list)
    for access in log:
        if delays.get(access.site, 0) > 0:
            times[access.site].append(access)
    found = []
    for site, accesses in times.items():
        due = float("-inf")
        for access in sorted(accesses, key=lambda access: access.time):
            early_s = due - access.time
            if early_s > slack_s:
                found.append(f"{access.url} came {early_s:.3f} s early")
            due = max(due, access.time) + delays[site]
    return found


def _disobedient(log: Sequence[Access], disallowed: frozenset[str]) -> list[str]:
    asked: set[str] = set()
    found = []
    for access in sorted(log, key=lambda access: access.time):
        if access.path == "/robots.txt":
            asked.add(access.site)
        elif access.site not in asked:
            found.append(f"{access.url} came before robots.txt")
        elif access.url in disallowed:
            found.append(access.url)
    return found
