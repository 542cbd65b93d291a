"""Load balance by heavy blocks on real peers: the paper's eight peers with its rates (P1 2.2, Table 2, Fig 6 to 8).

`levels` is the counting model of the same eight peers. It stands beside the real peers here, for the same hours and T.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

from .balancing import DRAIN, LEVEL, OFF, PRINTED
from .experiment import Figure, Finding, Progress, Result, Series, Table
from .level_model import LevelRun, Policy, run
from .table2 import BLOCK, PEERS, gain_bound, light
from .table2_run import SITES, SPEED, PeerRun, run_peers

INTERVAL_S = 60.0
"""T, in seconds of the paper, which names none: the shortest that is several round trips and leases of the run."""
HOURS, HOURS_FULL, HOURS_QUICK = 1.0, 4.0, 0.4
HOUR_S = 3_600.0
SAMPLE_S = 300.0
GAIN = 33.3
"""Percent: the gain that the paper prints, and the target."""
MODELED: dict[str, Policy] = {OFF: "none", PRINTED: "published", LEVEL: "ours"}
"""Policy of the real peers -> policy of the counting model."""

HOW = """Real peers in a simulated network, with the rates and the work areas of Table 2, H = 20 and all eight peers.
{time} The run has {hours:g} h of the paper's time, whose length the paper does not print. A URL arrives as a link that
one of the eight peers found, at a site of the peer that is to own it ({sites} sites each). Arrivals are Poisson and the
same for all policies. The web answers each peer as often as its v allows, one request at a time. The policies are those
of the experiment balancing: blocks are lent on a lease, a site at a time. Load ratios are looked at every 20 s,
extremes after half of the time. Messages are requests among peers, their answers, and datagrams of the overlay. Below
stands the counting model (the experiment levels) with the same arrivals, T and hours, in which a block moves in no
time."""


SCALED = """Scaled is the time: a second of the run is {speed:g} seconds of the paper, so all rates are {speed:g} times
as high, and T = {interval:g} s (the paper names none) is {scaled:g} s. Round trips, leases and heartbeats are not
scaled, so beside the work they weigh {speed:g} times as much as they would at the paper's rates."""
UNSCALED = """The time is the paper's own: all rates are those of its table, and T = {interval:g} s (the paper names
none)."""


def table2(seed: int, progress: Progress, *, hours: float = HOURS, speed: float = SPEED) -> Result:
    """Let the eight peers crawl by each policy for so many hours of the paper."""
    policies = (OFF, PRINTED, LEVEL, DRAIN)
    runs: dict[str, PeerRun] = {}
    for number, policy in enumerate(policies):
        runs[policy] = run_peers(
            policy,
            seed=seed,
            until=hours * HOUR_S,
            interval_s=INTERVAL_S,
            settled_at=hours * HOUR_S / 2,
            sample_s=SAMPLE_S,
            speed=speed,
            progress=_part(progress, number, len(policies)),
        )
    model = {name: _model(policy, seed, hours) for name, policy in MODELED.items()}
    progress(1.0)
    return Result(
        title="Load balance by heavy blocks, on real peers",
        paper="P1 2.2, Table 2, Fig 6 to 8",
        how=" ".join(HOW.split()).format(
            time=" ".join((UNSCALED if speed == 1 else SCALED).split()).format(
                speed=speed, interval=INTERVAL_S, scaled=INTERVAL_S / speed
            ),
            hours=hours,
            sites=SITES,
        ),
        seed=seed,
        findings=_findings(runs, model, hours),
        tables=[_peers(runs), _policies(runs, model)],
        figures=_figures(runs, "table2" if speed == SPEED else "table2-unscaled"),
    )


def gain(run: PeerRun | LevelRun, without: PeerRun | LevelRun) -> float:
    """Return by how many percent more pages a run had than the one without lending."""
    return 100 * (run.pages / without.pages - 1)


def _part(progress: Progress, number: int, parts: int) -> Callable[[float], None]:
    return lambda share: progress((number + share) / (parts + 1))


def _model(policy: Policy, seed: int, hours: float) -> LevelRun:
    return run(
        PEERS,
        seed=seed,
        block=BLOCK,
        policy=policy,
        interval_s=INTERVAL_S,
        until=hours * HOUR_S,
        settled_at=hours * HOUR_S // (2 * INTERVAL_S) * INTERVAL_S,
        sample_s=SAMPLE_S,
    )


def _messages(run: PeerRun) -> int:
    """Return the messages of a run: requests with their answers, and datagrams of the overlay."""
    return 2 * run.requests + run.datagrams


def _findings(runs: dict[str, PeerRun], model: dict[str, LevelRun], hours: float) -> list[Finding]:
    off, level = runs[OFF], runs[LEVEL]
    bound = gain_bound(PEERS)
    return [
        *(
            Finding(
                what=f"{policy}: more pages with lending, {hours:g} h (%)",
                ours=gain(runs[policy], off),
                theirs=GAIN if policy != DRAIN else None,
                bound=bound,
                least=None if policy == PRINTED else GAIN,
            )
            for policy in (PRINTED, LEVEL, DRAIN)
        ),
        *(
            Finding(
                what=f"counting model, {policy}: more pages, {hours:g} h (%)",
                ours=gain(model[policy], model[OFF]),
                theirs=GAIN,
                bound=bound,
            )
            for policy in (PRINTED, LEVEL)
        ),
        *_load_ratios(runs),
        Finding(what="level: light peers made heavy by a loan", ours=level.flipped, theirs=0, most=0),
        Finding(
            what="level: highest load ratio of a light peer",
            ours=max(level.highest[peer] for peer in light()),
            most=1.2,
        ),
        Finding(what="level: lowest load ratio of a light peer", ours=min(level.lowest[peer] for peer in light())),
        *(
            Finding(
                what=f"{policy}: rise of the gain, from the first to the second half of the time (points)",
                ours=_rise(runs[policy], off),
                least=None if policy == PRINTED else 0,
            )
            for policy in (PRINTED, LEVEL, DRAIN)
        ),
        *(
            Finding(
                what=f"{policy}: messages of all kinds in the same time, of those without lending",
                ours=_messages(runs[policy]) / _messages(off),
            )
            for policy in (PRINTED, LEVEL, DRAIN)
        ),
        *(
            Finding(
                what=f"{policy}: messages of all kinds for a page, of those without lending",
                ours=_messages(runs[policy]) / runs[policy].pages * off.pages / _messages(off),
            )
            for policy in (PRINTED, LEVEL, DRAIN)
        ),
        Finding(what="URLs fetched twice, all runs", ours=sum(each.fetched_twice for each in runs.values()), most=0),
    ]


def _load_ratios(runs: dict[str, PeerRun]) -> list[Finding]:
    """Return what Fig 6 shows: heavy peers fall, and light peers rise."""
    off = runs[OFF].samples
    heavy = [peer for peer in range(len(PEERS)) if peer not in light()]
    worse = sum(off[-1].ratios[peer] > max(1, off[len(off) // 2 - 1].ratios[peer]) for peer in heavy)
    found = [
        Finding(
            what="off: heavy peers (of 4) whose load ratio is over 1 and grows", ours=worse, theirs=4, least=len(heavy)
        )
    ]
    for policy in (PRINTED, LEVEL, DRAIN):
        with_ = runs[policy].samples[-1].ratios
        is_aim = policy != PRINTED
        found += [
            Finding(
                what=f"{policy}: pending URLs of the heavy peers at the end, of those without lending",
                ours=_pending(with_, heavy) / _pending(off[-1].ratios, heavy),
                most=0.5 if is_aim else None,
            ),
            Finding(
                what=f"{policy}: light peers (of 4) with a higher load ratio than without lending",
                ours=sum(with_[peer] > off[-1].ratios[peer] for peer in light()),
                theirs=4,
                least=len(light()) if is_aim else None,
            ),
        ]
    return found


def _pending(ratios: Sequence[float], peers: Sequence[int]) -> float:
    """Return the pending URLs of some peers with these load ratios."""
    return sum(ratios[peer] * PEERS[peer].blocks_wide * BLOCK for peer in peers)


def _rise(run: PeerRun, without: PeerRun) -> float:
    """Return the gain in percent in the second half of the time, less that in the first half."""
    half = len(run.samples) // 2
    gains = [
        sum(sample.pages for sample in run.samples[part]) / sum(sample.pages for sample in without.samples[part]) - 1
        for part in (slice(half), slice(half, None))
    ]
    return 100 * (gains[1] - gains[0])


def _peers(runs: dict[str, PeerRun]) -> Table:
    return Table(
        title="Table 2 on real peers, and what became of it (pages, and mean load ratio of the last 5 min)",
        heading=(
            *("peer", "v", "lambda", "W"),
            *(f"pages, {policy}" for policy in runs),
            *(f"ratio, {policy}" for policy in runs),
        ),
        rows=[
            (
                *(number + 1, peer.crawls, peer.arrivals, peer.blocks_wide * BLOCK),
                *(each.crawled[number] for each in runs.values()),
                *(each.samples[-1].ratios[number] for each in runs.values()),
            )
            for number, peer in enumerate(PEERS)
        ],
    )


def _policies(runs: dict[str, PeerRun], model: dict[str, LevelRun]) -> Table:
    rows: list[tuple[str | int | float, ...]] = [
        (
            policy,
            "real peers",
            each.pages,
            gain(each, runs[OFF]),
            each.flipped,
            min(each.lowest[peer] for peer in light()),
            max(each.highest[peer] for peer in light()),
            each.lent / each.pages,
            each.questions / each.pages,
            _messages(each) / each.pages,
        )
        for policy, each in runs.items()
    ]
    rows += [
        (
            policy,
            "counting model",
            each.pages,
            gain(each, model[OFF]),
            each.flipped,
            min(each.lowest[peer] for peer in light()),
            max(each.highest[peer] for peer in light()),
            each.messages.blocks * BLOCK / each.pages,
            each.messages.questions / each.pages,
            "–",
        )
        for policy, each in model.items()
    ]
    return Table(
        title="The policies on real peers, and in the counting model",
        heading=(
            "policy",
            "kind",
            "pages",
            "gain (%)",
            "light made heavy",
            "lowest light ratio",
            "highest light ratio",
            "URLs lent a page",
            "questions a page",
            "messages a page",
        ),
        rows=rows,
    )


def _figures(runs: dict[str, PeerRun], name: str) -> list[Figure]:
    hours = {policy: [sample.ends_at / HOUR_S for sample in each.samples] for policy, each in runs.items()}
    return [
        *(
            Figure(
                name=f"{name}-ratio-{policy.replace(' ', '-')}",
                title=f"Load ratio of real peers, {policy} ({part})",
                x="hours",
                y="pending / W",
                logarithmic="y",
                series=[
                    Series(
                        label=f"peer {number + 1}",
                        xs=hours[policy],
                        ys=[sample.ratios[number] for sample in runs[policy].samples],
                    )
                    for number in range(len(PEERS))
                ],
            )
            for policy, part in ((OFF, "Fig 6a"), (LEVEL, "Fig 6b"), (DRAIN, "Fig 6b"))
        ),
        _lines(
            f"{name}-output",
            "Output of real peers (Fig 7)",
            "pages / s",
            hours,
            {policy: [one.pages / one.lasted_s for one in each.samples] for policy, each in runs.items()},
            bound=sum(peer.crawls for peer in PEERS),
        ),
        _lines(
            f"{name}-gain",
            "Gain of real peers in pages since the start (Fig 7)",
            "%",
            hours,
            {policy: _gains(each, runs[OFF]) for policy, each in runs.items() if policy != OFF},
            bound=gain_bound(PEERS),
        ),
        _lines(
            f"{name}-messages",
            "Messages of real peers in 5 min: requests, answers and datagrams (Fig 8)",
            "messages",
            hours,
            {policy: [2 * one.requests + one.datagrams for one in each.samples] for policy, each in runs.items()},
        ),
    ]


def _lines(
    name: str,
    title: str,
    y: str,
    hours: dict[str, list[float]],
    values: dict[str, Sequence[float]],
    bound: float | None = None,
) -> Figure:
    lines = [Series(label=policy, xs=hours[policy], ys=ys) for policy, ys in values.items()]
    if bound is not None:
        xs = hours[OFF]
        lines.append(Series(label="bound", xs=[xs[0], xs[-1]], ys=[bound] * 2, dashed=True))
    return Figure(name=name, title=title, x="hours", y=y, series=lines)


def _gains(run: PeerRun, without: PeerRun) -> list[float]:
    """Return the cumulative gains in percent. Both runs were sampled at the same instants."""
    pages, least = (list(accumulate(sample.pages for sample in each.samples)) for each in (run, without))
    return [100 * (more / max(1, less) - 1) for more, less in zip(pages, least, strict=True)]
