"""History that expires: the paper's tests of its filters, done with ours (P4 4, Table 2, Fig 5).

Keys are drawn at random; what is measured are filters and sets as a peer would keep them, and no times. Errors are
both counted on keys never added and read off the bits that are set, which is exact where counts are few.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from math import ceil, exp, log2
from random import Random
from sys import getsizeof
from typing import TypeVar

from kadcrawl.keys import Key
from kadcrawl.store.bloom.encoding import to_bytes
from kadcrawl.store.bloom.expiring_filter import ExpiringFilter, Period
from kadcrawl.store.bloom.filter import Shape, error_of
from kadcrawl.store.bloom.pybloom import PybloomFilter

from .experiment import Figure, Finding, Progress, Result, Series, Table

HASHES = 6
"""k, as the paper holds it."""
ERROR = 1e-4
"""The error bound of the paper, and of all our epoch filters together."""
DAYS = 3
SIZES = (10_000, 40_000, 100_000)
SIZES_FULL = (*SIZES, 400_000, 1_000_000)
"""URLs of a day that are really added."""
COMPUTED = (100_000_000, 200_000_000)
"""... and for which only the formulas are asked, as no machine here has the room."""
ASKED = 100_000
"""Keys never added that are asked for."""
HOUR_S, DAY_S = 3_600.0, 86_400.0
PAGE = 100
"""Links of an answer of the search page that is requested each hour, ..."""
NEWS = 400
"""... of so many, which drift by: an hour shares half of its links with the hour before."""
HOURS = 4
REDIS_BYTES = 82.5
"""A fingerprint in a Redis set: 80 to 85, measured before (here there is no Redis)."""
GB = 1e9

Of = TypeVar("Of")
Cell = str | int | float
"""A cell of a table."""


def least_shift(keys: int) -> int:
    """Return the least b for which 2^b bits and `HASHES` hashes stay below `ERROR`: the paper's Table 2."""
    shift = ceil(log2(keys))
    while by_formula(keys, 1 << shift) >= ERROR:
        shift += 1
    return shift


def by_formula(keys: int, bits: int) -> float:
    """Return the error of a filter of so many bits (P4 formula 5)."""
    return float((1 - exp(-HASHES * keys / bits)) ** HASHES)


def least_bytes(error: float) -> float:
    """Return the least bytes per key of any Bloom filter with this error: log2(e) * log2(1/error) bits."""
    return log2(exp(1)) * log2(1 / error) / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Filters of six hashes, one filter for each day."""

    keys: int
    shift: int
    one: float
    """Error of one filter, by its bits."""
    all_days: float
    """Share of new keys in any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """A set of three days with a known expected size."""

    keys: int
    wrong: float
    """Share of new keys taken for seen."""
    false_positive_rate: float
    """The same by the bits."""
    key_bytes: float
    """Bytes of a key in one day."""


def hours(random: Random) -> list[set[Key]]:
    """Request a search page each hour and fetch all URLs not seen in this hour or the last. Return the fetches by
    hour."""
    news = [Key(random.randbytes(20)) for _ in range(NEWS)]
    seen = ExpiringFilter(Period(epoch_s=HOUR_S, epochs=2))
    fetched: list[set[Key]] = []
    for hour in range(HOURS):
        links = random.sample(news[hour * PAGE // 2 : hour * PAGE // 2 + 2 * PAGE], PAGE)
        fetched.append(set())
        for key in links:
            if not seen.contains(key, hour * HOUR_S):
                seen.add(key, hour * HOUR_S)
                fetched[hour].add(key)
    return fetched


def with_six_hashes(keys: int, random: Random) -> Fixed:
    """Fill filters as the paper's Table 2 sizes them."""
    shift = least_shift(keys)
    part_bits = (1 << shift) // HASHES // 8 * 8
    days = [PybloomFilter(Shape(keys, ERROR, HASHES, part_bits)) for _ in range(DAYS)]
    for day in days:
        for _ in range(keys):
            day.add(random.getrandbits(64))
    ask = PybloomFilter.asking(days)
    wrong = sum(ask(random.getrandbits(64)) for _ in range(ASKED))
    return Fixed(keys=keys, shift=shift, one=error_of(days[0]), all_days=wrong / ASKED)


def with_ours(keys: int, random: Random) -> Ours:
    """Let a set live through a day and a whole period after it."""
    seen = ExpiringFilter(Period(epoch_s=DAY_S, epochs=DAYS, error=ERROR))
    for day in range(DAYS + 1):
        for _ in range(keys):
            seen.add(Key(random.randbytes(20)), day * DAY_S)
    now = DAYS * DAY_S
    wrong = sum(seen.contains(Key(random.randbytes(20)), now) for _ in range(ASKED))
    size = len(to_bytes(seen, now)) / (DAYS * keys)
    return Ours(keys=keys, wrong=wrong / ASKED, false_positive_rate=seen.false_positive_rate(now), key_bytes=size)


def scrapy_bytes(keys: int, random: Random) -> float:
    """Return the bytes per fingerprint in the set of Scrapy's RFPDupeFilter, which holds 40 hex digits each."""
    kept = {random.randbytes(20).hex() for _ in range(keys)}
    return (getsizeof(kept) + sum(map(getsizeof, kept))) / keys


def expiring(seed: int, progress: Progress, sizes: Sequence[int] = SIZES) -> Result:
    """Measure the expiry of fingerprints, the errors of filters, and the bytes per fingerprint."""
    steps, done = 2 * sum(sizes), 0

    def measured(measure: Callable[[int, Random], Of], name: str) -> Iterator[Of]:
        nonlocal done
        for keys in sizes:
            yield measure(keys, Random(f"expiring {seed} {name} {keys}"))
            done += keys
            progress(done / steps)

    fetched = hours(Random(f"expiring {seed} hours"))
    fixed = [*measured(with_six_hashes, "six hashes")]
    ours = [*measured(with_ours, "ours")]
    scrapy = scrapy_bytes(max(sizes), Random(f"expiring {seed} scrapy"))
    return Result(
        title="History that expires: one Bloom filter a day",
        paper="P4 4: its test by hours, Table 2 and Fig 5",
        how=(
            f"A search page of {PAGE} links, out of news that drift by, is asked for {HOURS} hours; filters have a "
            "grain of an hour, and two live. Table 2 is done again with filters of the library kadcrawl uses: k = 6, "
            "of 2^b bits, b the least with which the formula stays below 1e-4, filled to the last key, three days of "
            "them. What kadcrawl itself does is to choose k by the error: three slices have a third of 1e-4 each, of "
            "which the first filter of a slice has nine tenths, and a day is expected to be like the one before; the "
            "first day, for which nothing could be expected, has expired. Errors by the bits are the share of bits set "
            f"to the power of k; those counted are of {ASKED:,} keys never added. Fig 5 has no numbers in its text, so "
            "the bytes of a Redis set are of a measurement of our own (80 to 85), those of Scrapy's set are measured "
            "here; at 10^8 keys a day and more all is computed from bytes per key."
        ),
        seed=seed,
        findings=[*again_by_hours(fetched, "URLs"), *_by_size(fixed, ours, scrapy)],
        tables=[_error_table(fixed), _our_table(ours), _memory_table(ours[-1].key_bytes, scrapy)],
        figures=[_memory_figure(ours[-1].key_bytes, scrapy)],
    )


def again_by_hours(fetched: Sequence[Set[object]], urls: str) -> Iterator[Finding]:
    """Yield what two hours each have in common. `urls` names whose URLs they are."""
    for one, other in combinations(range(HOURS), 2):
        apart = other - one == 1
        yield Finding(
            what=f"{urls} of hour {one + 1} fetched again in hour {other + 1}",
            ours=len(fetched[one] & fetched[other]),
            theirs=0 if apart else None,
            least=None if apart else 1,
            most=0 if apart else None,
        )


def _by_size(fixed: list[Fixed], ours: list[Ours], scrapy: float) -> Iterator[Finding]:
    worst = max(fixed, key=lambda one: one.one)
    yield Finding(
        what=f"error of one filter, k = 6, {worst.keys:,} URLs in 2^{worst.shift} bits",
        ours=worst.one,
        theirs=ERROR,
        bound=by_formula(worst.keys, 1 << worst.shift),
        most=1.05 * ERROR,
    )
    last = ours[-1]
    yield Finding(
        what=f"error of all three slices, {last.keys:,} URLs a day, by the bits",
        ours=last.false_positive_rate,
        theirs=ERROR,
        most=ERROR,
    )
    yield Finding(
        what="bytes of a URL in a slice, all three to 1e-4",
        ours=last.key_bytes,
        bound=least_bytes(ERROR / DAYS),
        most=1.1 * least_bytes(ERROR / DAYS),
    )
    yield Finding(what="the same in a Redis set, times as much", ours=REDIS_BYTES / last.key_bytes, least=10)
    yield Finding(what="in Scrapy's set, times as much", ours=scrapy / last.key_bytes, least=10)


def _error_table(fixed: list[Fixed]) -> Table:
    rows: list[list[Cell]] = [
        [one.keys, one.shift, by_formula(one.keys, 1 << one.shift), one.one, one.all_days] for one in fixed
    ]
    rows += [
        [keys, shift, by_formula(keys, 1 << shift), "–", "–"] for keys in COMPUTED for shift in [least_shift(keys)]
    ]
    return Table(
        title="k = 6: the least power of 2 that stays below 1e-4, and what it errs",
        heading=["URLs a day", "b of 2^b bits", "formula", "one filter, by the bits", "any of three days, counted"],
        rows=rows,
    )


def _our_table(ours: list[Ours]) -> Table:
    return Table(
        title="k by the error: three slices, 1e-4 in all",
        heading=["URLs a day", "counted", "by the bits", "bytes of a URL in a slice", "least of any Bloom filter"],
        rows=[[one.keys, one.wrong, one.false_positive_rate, one.key_bytes, least_bytes(ERROR / DAYS)] for one in ours],
    )


def _kept(key_bytes: float, scrapy: float) -> dict[str, Callable[[int], float]]:
    """Return method -> function from URLs a day to bytes for three days."""
    return {
        "Scrapy's set": lambda keys: DAYS * keys * scrapy,
        "Redis set": lambda keys: DAYS * keys * REDIS_BYTES,
        "k = 6, 2^b bits": lambda keys: DAYS * (1 << least_shift(keys)) / 8,
        "kadcrawl": lambda keys: DAYS * keys * key_bytes,
        "least of any Bloom filter": lambda keys: DAYS * keys * least_bytes(ERROR / DAYS),
    }


def _memory_table(key_bytes: float, scrapy: float) -> Table:
    kept = _kept(key_bytes, scrapy)
    return Table(
        title="Memory of three days, GB",
        heading=["", *(f"{DAYS * keys:,} URLs" for keys in COMPUTED), "bytes of a URL"],
        rows=[
            [name, *(of(keys) / GB for keys in COMPUTED), of(COMPUTED[-1]) / (DAYS * COMPUTED[-1])]
            for name, of in kept.items()
        ],
    )


def _memory_figure(key_bytes: float, scrapy: float) -> Figure:
    daily = [keys * 25_000_000 for keys in range(1, 9)]
    return Figure(
        name="expiring",
        title="Memory for the fingerprints of three days",
        x="million URLs in three days",
        y="GB",
        series=[
            Series(
                label=name,
                xs=[DAYS * keys / 1e6 for keys in daily],
                ys=[of(keys) / GB for keys in daily],
                dashed=name != "kadcrawl",
            )
            for name, of in _kept(key_bytes, scrapy).items()
        ],
        logarithmic="y",
    )
