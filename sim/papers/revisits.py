"""History that expires, on real peers: P4's tests by hours and by days (P4 4).

`expiring` fills filters alone, which is the counting model of these tests. It stands beside the real peers here.
"""

from collections.abc import Iterator, Sequence
from random import Random

from kadcrawl.keys import Key

from .daily_web import BlogWeb, SearchWeb
from .experiment import Finding, Progress, Result, Table
from .expiring import (
    DAYS as PERIOD,
    ERROR,
    HOURS,
    PAGE,
    REDIS_BYTES,
    Ours,
    again_by_hours,
    hours,
    least_bytes,
    with_ours,
)
from .revisits_run import ASKED, DAY_S, HOUR_S, PEERS, Day, crawl_days, job_of, left_out, repeated

SCALE = 36.0
"""Seconds of the paper's day in one second of the run, unless the days have their full length."""
DAYS = 6
BLOGS = 2
POSTS = 500
"""New posts of a blog on a day: more than a filter keeps exactly."""
COPIES = 3
QUICK_S = 600.0
"""Length of a day, and of an hour, of the quick form."""
ASKED_QUICK = 10_000
"""Keys never added that a cell is asked for in the quick form."""

HOW = """{peers} real peers in a simulated network, with --history bloom. By hours: --recrawl-after 2h and a filter an
hour. {hours} Each hour its search page of {page} links is added, out of news that drift by. By days: --recrawl-after 3
days and a filter a day. {scaled} Each day a list is added that leads to all posts so far, {posts} new
ones of each of {blogs} blogs a day, for {days} days. When a list has expired, the peers take it up again by themselves.
What was fetched is counted at the web. Filters are those of the running peers: a blog is one site, so its posts are in
one cell, at its owner and two backups. Errors are counted on {asked:,} keys never added, asked of each peer for each
blog on each day. The counting model (the experiment expiring) fills one set of filters with as many keys as a blog
has on each of the last three days. The paper's scale of 10^8 keys a day is computed there only."""


def revisits(
    seed: int,
    progress: Progress,
    *,
    day_s: float = DAY_S / SCALE,
    hour_s: float = HOUR_S,
    posts: int = POSTS,
    asked: int = ASKED,
) -> Result:
    """Crawl hours and days. `day_s` and `hour_s` are the lengths of a day and an hour in the simulated world."""
    steps, done = HOURS + DAYS, 0

    def advance() -> None:
        nonlocal done
        done += 1
        progress(min(1.0, done / steps))

    search, blogs = SearchWeb(seed, PAGE), BlogWeb(BLOGS, posts)
    by_hour = crawl_days(seed, search, job_of(hour_s, 2), HOURS, hour_s, advance, asked)
    by_day = crawl_days(seed, blogs, job_of(day_s, PERIOD), DAYS, day_s, advance, asked)
    met = [
        {
            f"http://blog{blog}.test/post/{of}/{number}"
            for blog in range(BLOGS)
            for of in range(1, day + 1)
            for number in range(posts)
        }
        for day in range(1, DAYS + 1)
    ]
    model = with_ours(2 * posts, Random(f"revisits {seed}"))
    return Result(
        title="History that expires, on real peers",
        paper="P4 4: its tests by hours and by days",
        how=" ".join(HOW.split()).format(
            peers=PEERS,
            page=PAGE,
            hours=_length("hour", hour_s, HOUR_S),
            scaled=_length("day", day_s, DAY_S),
            posts=posts,
            blogs=BLOGS,
            days=DAYS,
            asked=asked,
        ),
        seed=seed,
        findings=[
            *again_by_hours([set(hour.fetched) for hour in by_hour], "real peers: URLs"),
            *_by_days(by_day, left_out(by_day, met, PERIOD), model),
        ],
        tables=[
            _hour_table([set(hour.fetched) for hour in by_hour], hours(Random(f"expiring {seed} hours"))),
            _day_table(by_day, left_out(by_day, met, PERIOD)),
            _filter_table(by_day, model),
        ],
    )


def _length(name: str, ours_s: float, full_s: float) -> str:
    """Return the sentence about the length of an hour or a day."""
    if ours_s == full_s:
        return f"Each {name} has its full length, by the calendar."
    return f"The {name} of the run has {ours_s:g} s: a scale of 1 to {full_s / ours_s:g}, as idle peers cost time too."


def error(days: Sequence[Day]) -> float:
    """Return the share of the keys never added that the filters of the peers had."""
    return sum(day.taken_for_known for day in days) / sum(day.asked for day in days)


def peer_bytes(day: Day) -> float:
    """Return the bytes of a key in the filters of a peer that holds it."""
    return day.filter_bytes / day.held


def swarm_bytes(day: Day) -> float:
    """Return the bytes of a URL in the filters of the whole swarm."""
    return day.filter_bytes / day.live


def _by_days(days: Sequence[Day], missing: Sequence[int], model: Ours) -> Iterator[Finding]:
    again = sum(len(set(days[day].fetched) & set(days[day - PERIOD].fetched)) for day in range(PERIOD, len(days)))
    due = sum(len(set(days[day - PERIOD].fetched)) for day in range(PERIOD, len(days)))
    yield Finding(
        what="posts fetched again within three days", ours=sum(repeated(days, PERIOD)), theirs=0, bound=0, most=0
    )
    yield Finding(what="posts fetched again once three days were over, share", ours=again / due, bound=1.0, least=0.99)
    yield Finding(what="posts met and never fetched in their period", ours=sum(missing), bound=0)
    last = days[-1]
    yield Finding(
        what="new keys taken for known, share: filters of running peers, by the bits",
        ours=last.error_by_bits,
        theirs=ERROR,
        most=ERROR,
    )
    yield Finding(what="new keys taken for known, share: filters of running peers, counted", ours=error([last]))
    yield Finding(
        what="new keys taken for known, share: counting model, by the bits",
        ours=model.false_positive_rate,
        theirs=ERROR,
    )
    yield Finding(
        what="bytes of a URL in the filters of a running peer", ours=peer_bytes(last), bound=least_bytes(ERROR / PERIOD)
    )
    yield Finding(
        what="bytes of a URL in its filters, counting model", ours=model.key_bytes, bound=least_bytes(ERROR / PERIOD)
    )
    yield Finding(
        what=f"bytes of a URL in the filters of the swarm ({COPIES} copies)",
        ours=swarm_bytes(last),
        bound=COPIES * least_bytes(ERROR / PERIOD),
        most=REDIS_BYTES / 2,
    )
    yield Finding(
        what="one copy in a Redis set, times as much as a peer's filters", ours=REDIS_BYTES / peer_bytes(last)
    )


def _hour_table(fetched: Sequence[set[str]], model: Sequence[set[Key]]) -> Table:
    return Table(
        title="By hours, two filters: URLs fetched, and those among them of earlier hours",
        heading=("hour", "fetched", *(f"of hour {hour + 1}" for hour in range(HOURS)), "counting model: fetched"),
        rows=[
            (
                number + 1,
                len(each),
                *(len(each & fetched[other]) if other < number else "" for other in range(HOURS)),
                len(model[number]),
            )
            for number, each in enumerate(fetched)
        ],
    )


def _day_table(days: Sequence[Day], missing: Sequence[int]) -> Table:
    twice = repeated(days, PERIOD)
    return Table(
        title="By days, three filters: posts of the real peers",
        heading=(
            "day",
            "fetched",
            "for the first time",
            "again, of three days before",
            "again too early",
            "met and not fetched in their period",
            "URLs in live filters",
        ),
        rows=[
            (
                number + 1,
                len(day.fetched),
                len(set(day.fetched) - {url for before in days[:number] for url in before.fetched}),
                len(set(day.fetched) & set(days[number - PERIOD].fetched)) if number >= PERIOD else 0,
                twice[number],
                missing[number],
                day.live,
            )
            for number, day in enumerate(days)
        ],
    )


def _filter_table(days: Sequence[Day], model: Ours) -> Table:
    rows: list[tuple[str | int | float, ...]] = [
        (
            f"day {number}",
            day.asked,
            day.taken_for_known,
            day.error_by_bits,
            peer_bytes(day),
            swarm_bytes(day),
            day.held / day.live,
        )
        for number, day in enumerate(days, 1)
    ]
    rows.append(("counting model", "–", "–", model.false_positive_rate, model.key_bytes, "–", 1))
    return Table(
        title="Filters of the running peers at the end of each day",
        heading=(
            "",
            "new keys asked for",
            "taken for known",
            "error by the bits",
            "bytes of a URL at a peer",
            "bytes of a URL in the swarm",
            "copies",
        ),
        rows=rows,
    )
