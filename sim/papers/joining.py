"""Joining well: the range of the busiest peer when each joiner takes the best of a few IDs (power of d choices).

Peers join one after another. A joiner knows only its own lookups: for each ID it has drawn, the owner found there and
the mask of that owner's live buckets, or the number of URLs of that owner. Ranges are exact shares of the space, not
counts of keys. Loads are the URLs of the sites in the owned cells. Only the top 64 bits of the IDs are drawn, because a
thousand peers differ in them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from kadcrawl.balance.identity import IdCandidate, Range, choose_id
from kadcrawl.keys import ID_BITS, NodeId

from .experiment import Figure, Finding, Progress, Result, Series, Table
from .newcomers import ids_of, shares
from .workload import SITES, of_sites

DRAWN_BITS = 64
LOW_BITS = ID_BITS - DRAWN_BITS
CHOICES = (1, 2, 4, 8)
SIZES = (8, 100, 1_000)
RUNS = {100: 200, 1_000: 20}
"""Size of a swarm -> number of swarms. Small swarms vary more."""
URLS = 200_000
URL_RUNS = 10
PICTURED = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 72, 100, 128, 192, 256, 384, 512, 768, 1_000)
TEETH = sorted({min(1_000, most) for bit in range(1, 10) for most in (1 << bit, 3 << bit - 1, (2 << bit) - 1)})
"""Sizes at which the bound rises and falls."""
BLIND, BEST = min(CHOICES), max(CHOICES)
REAL: dict[str, tuple[int, float | None, int]] = {
    "8 peers, one after another": (8, None, 20),
    "8 peers, all at once": (8, 1e-5, 20),
    "100 peers, 10 a second": (100, 0.1, 1),
}
"""Swarms of real peers: how many, how many seconds apart (None: once the one before has entered), how many swarms."""
TWICE = 2.0
"""The target: no peer owns more than twice the mean, as with perfect halving."""


def gini(parts: Iterable[float]) -> float:
    """Return the Gini coefficient of the parts: 0 if all are equal, near 1 if a single part is everything."""
    ordered = np.sort(np.fromiter(parts, dtype=np.float64))
    ranks = 2 * np.arange(1, len(ordered) + 1) - len(ordered) - 1
    return float(ranks @ ordered / (len(ordered) * ordered.sum()))


def best_ratio(peers: int) -> float:
    """Return the least that the busiest of so many can have over the mean when ranges are made by halving."""
    return peers / (1 << peers.bit_length() - 1)


class IdSwarm:
    """Peers that have joined, and their ranges."""

    def __init__(
        self, room: int, sites: NDArray[np.uint64] | None = None, urls: NDArray[np.int64] | None = None
    ) -> None:
        """Make room for `room` peers. `sites` are the anchors (top 64 bits) of the cells with `urls`."""
        self.size = 0
        self._ids = np.zeros(room, dtype=np.uint64)
        self._masks = np.zeros(room, dtype=np.uint64)
        self._sites = np.zeros(0, dtype=np.uint64) if sites is None else sites
        self._urls = np.zeros(0, dtype=np.int64) if urls is None else urls
        self._owners = np.zeros(len(self._sites), dtype=np.int64)

    @property
    def node_ids(self) -> list[int]:
        """The IDs of 160 bits, in the order of joining."""
        return [number << LOW_BITS for number in self._ids[: self.size].tolist()]

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the space that each peer owns."""
        return 2.0 ** -np.bitwise_count(self._masks[: self.size]).astype(np.float64)

    @property
    def loads(self) -> NDArray[np.int64]:
        """The number of URLs that each peer owns."""
        return np.bincount(self._owners, weights=self._urls, minlength=self.size).astype(np.int64)

    def nearest(self, node_id: int) -> int:
        """Return the number of the peer nearest to an ID."""
        return int((self._ids[: self.size] ^ np.uint64(node_id >> LOW_BITS)).argmin())

    def range_of(self, peer: int) -> Range:
        """Return the range that a peer advertises."""
        return Range(owner=NodeId(int(self._ids[peer]) << LOW_BITS), live_mask=int(self._masks[peer]) << LOW_BITS)

    def join(self, node_id: int) -> None:
        """Let a peer in."""
        top, size = np.uint64(node_id >> LOW_BITS), self.size
        self._ids[size] = top
        if size:
            # The highest bit in which two IDs differ: all lower ones are filled, then taken off.
            filled = self._ids[:size] ^ top
            for shift in (1, 2, 4, 8, 16, 32):
                filled |= filled >> np.uint64(shift)
            buckets = filled ^ (filled >> np.uint64(1))
            self._masks[:size] |= buckets
            self._masks[size] = np.bitwise_or.reduce(buckets)
            self._owners[(top ^ self._sites) < (self._ids[self._owners] ^ self._sites)] = size
        self.size += 1


Cell = str | int | float
"""A cell of a table."""
Join = Callable[[IdSwarm, Random], int]
"""Returns the ID of a joiner, with 160 bits."""


def draw_id(random: Random) -> NodeId:
    """Return one more ID."""
    return NodeId(random.getrandbits(DRAWN_BITS) << LOW_BITS)


def by_range(choices: int) -> Join:
    """Return the joiner that draws `choices` IDs and takes the ID in the largest range."""

    def join(swarm: IdSwarm, random: Random) -> int:
        drawn = [draw_id(random) for _ in range(choices)]
        if choices == 1:
            return drawn[0]
        return choose_id([IdCandidate(node_id=one, range=swarm.range_of(swarm.nearest(one))) for one in drawn]).node_id

    return join


def by_load(choices: int) -> Join:
    """Return the joiner that takes the ID whose owner has most URLs."""

    def join(swarm: IdSwarm, random: Random) -> int:
        loads = swarm.loads
        return max((draw_id(random) for _ in range(choices)), key=lambda one: loads[swarm.nearest(one)])

    return join


@dataclass(slots=True)
class JoinOutcome:
    """The results of some runs, by the size of the swarm."""

    ratio: dict[int, list[float]] = field(default_factory=dict)
    gini: dict[int, list[float]] = field(default_factory=dict)
    url_ratio: dict[int, list[float]] = field(default_factory=dict)

    def note(self, swarm: IdSwarm) -> None:
        """Take down how a swarm stands."""
        shares, loads, size = swarm.shares, swarm.loads, swarm.size
        self.ratio.setdefault(size, []).append(float(shares.max()) * size)
        self.gini.setdefault(size, []).append(gini(shares))
        if loads.any():
            self.url_ratio.setdefault(size, []).append(float(loads.max() / loads.mean()))


def grow(swarm: IdSwarm, peers: int, join: Join, random: Random, seen: JoinOutcome | None = None) -> IdSwarm:
    """Let peers join, each after the peer before, until there are `peers`. The first peer has no choice."""
    while swarm.size < peers:
        swarm.join(join(swarm, random) if swarm.size else draw_id(random))
        if seen is not None and swarm.size in PICTURED:
            seen.note(swarm)
    return swarm


def joining(seed: int, progress: Progress) -> Result:
    """Grow swarms by several methods to join, and compare the busiest peers."""
    done, steps = 0, len(CHOICES) * sum(RUNS.values()) + 3 * URL_RUNS + 2 * sum(runs for _, _, runs in REAL.values())

    def advance() -> None:
        nonlocal done
        done += 1
        progress(done / steps)

    ways = {_drawn(choices): by_range(choices) for choices in CHOICES}
    seen = {name: JoinOutcome() for name in ways}
    for name, join in ways.items():
        for peers, runs in RUNS.items():
            for run in range(runs):
                grow(IdSwarm(peers), peers, join, Random(f"joining {seed} {name} {peers} {run}"), seen[name])
                advance()
    urls = of_sites(seed, URLS)
    anchors, counts = urls.cell_loads()
    most = max(CHOICES)
    by_what = {
        _drawn(1): by_range(1),
        f"{_drawn(most)}, the largest range": by_range(most),
        f"{_drawn(most)}, the most URLs": by_load(most),
    }
    loaded = {name: JoinOutcome() for name in by_what}
    for name, join in by_what.items():
        for run in range(URL_RUNS):
            random = Random(f"joining {seed} URLs {name} {run}")
            grow(IdSwarm(max(SIZES), anchors, counts), max(SIZES), join, random, loaded[name])
            advance()
    real = _real_peers(seed, advance)
    largest_site = float(urls.largest_site.mean())
    return Result(
        title="Joining well: the power of d choices",
        paper="P1 1.2 and 1.4: what XOR ranges alone leave to balance",
        how=(
            f"Peers join one after another, and nobody leaves: {RUNS[min(RUNS)]} swarms of {min(RUNS)} peers and "
            f"{RUNS[max(RUNS)]} of {max(RUNS):,}. A joiner draws d IDs (an ID is drawn at random: it "
            "can be drawn again, not chosen), looks each ID up, is told by the owner found there which of its buckets "
            "are live, and takes the ID in the largest range, of equals the one that gets most itself. There is no "
            "middle of a range to aim at: wherever an ID falls in one, it halves it. So the bound is the least "
            "maximum that shares of 1/2, 1/4, 1/8, … allow, which is below twice the mean at any size. For "
            f"the last table there are {URLS:,} URLs on {SITES:,} sites of Zipf sizes, all known before the "
            "first peer joins, which favours joiners that ask for URLs. Beside the model join real peers: the "
            "unmodified peer in a simulated network, by way of up to three others, whichever these are; of several who "
            "ask one peer at one moment each is told of the others."
        ),
        seed=seed,
        findings=[
            *(_finding(name, seen[name], peers) for name in (_drawn(1), _drawn(most)) for peers in SIZES),
            Finding(
                what=f"the same, {_drawn(most)}, at the worst of the sizes in the figure",
                ours=max(_means(seen[_drawn(most)].ratio, PICTURED)),
                bound=TWICE,
            ),
            *(
                Finding(
                    what=f"largest range / mean, real peers: {name}, {_drawn(drawn)}", ours=fmean(ratios), bound=bound
                )
                for (name, drawn), ratios in real.items()
                for bound in [best_ratio(REAL[name][0])]
            ),
        ],
        tables=[_range_table(seen), _real_table(real), _gini_table(seen), _url_table(loaded, largest_site)],
        figures=[
            Figure(
                name="joining",
                title="The busiest peer's range, over the mean",
                x="peers",
                y="largest range / mean range",
                series=[
                    *(Series(label=name, xs=PICTURED, ys=_means(of.ratio, PICTURED)) for name, of in seen.items()),
                    Series(
                        label="perfect halving",
                        xs=TEETH,
                        ys=[best_ratio(peers) for peers in TEETH],
                        dashed=True,
                    ),
                ],
                logarithmic="x",
            ),
        ],
    )


def _real_peers(seed: int, advance: Callable[[], None]) -> dict[tuple[str, int], list[float]]:
    """Return, for each kind of swarm and number of IDs drawn, the largest range over the mean in each swarm."""
    found: dict[tuple[str, int], list[float]] = {}
    for name, (peers, apart_s, runs) in REAL.items():
        for drawn in (BLIND, BEST):
            ratios = found[name, drawn] = []
            for run in range(runs):
                ratios.append(max(shares(ids_of(1_000 * seed + run, peers, drawn, apart_s))) * peers)
                advance()
    return found


def _real_table(real: dict[tuple[str, int], list[float]]) -> Table:
    return Table(
        title="Real peers: largest range / mean",
        heading=["", *(f"{_drawn(drawn)}{what}" for drawn in (BLIND, BEST) for what in ("", ", worst")), "bound"],
        rows=[
            [
                name,
                *(value for drawn in (BLIND, BEST) for of in [real[name, drawn]] for value in (fmean(of), max(of))),
                best_ratio(peers),
            ]
            for name, (peers, _, _) in REAL.items()
        ],
    )


def _drawn(choices: int) -> str:
    return f"d = {choices}"


def _means(by_size: dict[int, list[float]], sizes: Iterable[int]) -> list[float]:
    return [fmean(by_size[size]) for size in sizes]


def _finding(name: str, seen: JoinOutcome, peers: int) -> Finding:
    return Finding(
        what=f"largest range / mean, {peers:,} peers, {name}",
        ours=fmean(seen.ratio[peers]),
        bound=best_ratio(peers),
        most=TWICE if name == _drawn(max(CHOICES)) else None,
    )


def _range_table(seen: dict[str, JoinOutcome]) -> Table:
    rows: list[list[Cell]] = [
        [name, *(number for peers in SIZES for number in (fmean(of.ratio[peers]), max(of.ratio[peers])))]
        for name, of in seen.items()
    ]
    return Table(
        title="Largest range / mean: mean of all swarms, and the worst of them",
        heading=["joiner", *(f"{peers:,} peers{what}" for peers in SIZES for what in ("", ", worst"))],
        rows=[*rows, ["perfect halving", *(best_ratio(peers) for peers in SIZES for _ in range(2))]],
    )


def _gini_table(seen: dict[str, JoinOutcome]) -> Table:
    return Table(
        title="Gini coefficient of the ranges",
        heading=["joiner", *(f"{peers:,} peers" for peers in SIZES)],
        rows=[[name, *_means(of.gini, SIZES)] for name, of in seen.items()],
    )


def _url_table(seen: dict[str, JoinOutcome], largest_site: float) -> Table:
    rows: list[list[Cell]] = [
        [name, *(fmean(of[peers]) for peers in SIZES for of in (one.url_ratio, one.ratio))]
        for name, one in seen.items()
    ]
    bounds = [bound for peers in SIZES for bound in (max(1.0, largest_site * peers), best_ratio(peers))]
    return Table(
        title="The same in URLs: whether to ask an owner for its range or for its URLs",
        heading=[
            "joiner",
            *(f"{what}, {peers:,} peers" for peers in SIZES for what in ("URLs / mean", "range / mean")),
        ],
        rows=[*rows, ["bound: the largest site; perfect halving", *bounds]],
    )
