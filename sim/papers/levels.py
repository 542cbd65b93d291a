"""Load balance by heavy blocks: a counting model of the paper's eight peers, over a day (P1 2.2, Table 2, Fig 6, 7).

The decisions are kadcrawl's own (`kadcrawl.balance`); the swarm around them only counts (`level_model`). The same
eight peers are real peers in `table2_peers`.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from kadcrawl.lending.level_policy import RATES_INTERVALS

from .experiment import Finding, Progress, Result, Table
from .level_figures import figures
from .level_model import LevelRun, Policy, run
from .table2 import BLOCK, PEERS, gain_bound, interval_needed, light

FEWER = 0.8
"""Arrivals for a swarm that can do its work."""

DAY_S = 86400.0
SETTLED_S = 3600.0
"""The transient. In theory the light peers' work areas are full after 440 URLs / 0.192 URL/s = 38 min."""
SAMPLE_S = 600.0
EARLY_S = 7200.0
"""An early instant at which gains are compared too.

The paper's gain was still rising at the end of its run, and the paper does not state the length of the run.
"""
INTERVAL_S = 8.0
"""T. The paper names none."""
OTHER_INTERVALS_S = (60.0, 600.0, 1200.0)
SIZED = ((200.0, 1), (200.0, RATES_INTERVALS))
"""T, and within how many intervals a work area is to be filled or finished: one as in the paper, and kadcrawl's."""

DRAWS = 8
DRAWS_INTERVAL_S = 60.0
"""T of the runs by the published rules, and (`DRAWS`) their number, each with new node IDs."""

HOW = """A model that only counts, in virtual time over 24 hours, around the decisions kadcrawl takes. URLs arrive at
each peer as a Poisson process, the same with and without shedding; a peer crawls one after another, first come first,
each in 1/v s; a block moves in no time, and its URLs count where they are crawled. Node IDs are drawn at random, all
peers know each other. H = 20 and the work areas are Table 2's. The paper does not tell T: at {interval:g} s the
peers whose work area is one block stay below 1.5 x W even between updates, which with blocks as large as the work
area no T much longer allows. (By the paper's own bound Table 2's n = 6 needs a T beyond {needed:,.0f} s for peer 5,
and n = 4 one beyond {needed_6:,.0f} s for peer 6: its sizes were set with an eye to practice, as it says.) Ratios are
of every instant after the first hour. What may have kept the paper at +33.3 %: it gives all blocks to one light peer
or none, so a peer that once has more blocks than any light one has room for gives none any more, and with more
arrivals than power this befalls the heaviest, and others after it as the node IDs fall. If only peer 4 is stuck,
+{one:.1f} % remain; with 7 as well +{two:.1f} %, or with 3 instead +{other:.1f} %; if all are, nothing.
Played here as printed with {draws} draws of IDs, T = {draws_interval:g} s, the gain after the day is {least:+.1f} to
{most:+.1f} %, its median {median:+.1f} %. Besides, theirs was still rising when it ended, for light peers get
nothing before the first T is over. And light peers chosen by several at once became heavy. Ours offers each light
peer what it has room for, less half a block, and goes on to the next; takers refuse what would be more; and who gains
more than it crawls gives a block for every one begun. The bound is one of expectations: chance in the arrivals moves
the gain by some tenths of a percent. Questions for levels are counted as the paper asks them, by each heavy peer to
all its neighbors at each update: while nobody has room that is most of what is sent, the more the shorter T (see the
table); the gain does not hang on so short a T, only the ratio of 1.5 does. With W by the paper's own bound, so that it
is filled or finished within one T, a light peer runs dry before it is filled again, and the gain is below the paper's
own at T = 200 s. kadcrawl takes {intervals} T for one in this bound."""


def levels(seed: int, progress: Progress) -> Result:
    """Run the experiment: some twenty runs of less than a second each."""
    variants: list[tuple[Policy, float]] = [
        (policy, interval_s) for policy in ("ours", "published") for interval_s in (INTERVAL_S, *OTHER_INTERVALS_S)
    ]
    done = 0

    def play(
        policy: Policy, interval_s: float, share: float = 1.0, sized_within: int | None = None, draw: int = 0
    ) -> LevelRun:
        nonlocal done
        result = run(
            [replace(peer, arrivals=peer.arrivals * share) for peer in PEERS],
            seed=seed,
            block=BLOCK,
            policy=policy,
            interval_s=interval_s,
            until=DAY_S,
            settled_at=SETTLED_S,
            sample_s=SAMPLE_S,
            sized_within=sized_within,
            draw=draw,
        )
        done += 1
        progress(done / (len(variants) + len(SIZED) + DRAWS + 3))
        return result

    without, fewer_without = play("none", SAMPLE_S), play("none", SAMPLE_S, FEWER)
    fewer = play("ours", INTERVAL_S, FEWER)
    runs = {variant: play(*variant) for variant in variants}
    sized = {variant: play("ours", variant[0], sized_within=variant[1]) for variant in SIZED}
    printed = [play("published", DRAWS_INTERVAL_S, draw=draw) for draw in range(DRAWS)]
    gains = [gain(each, without) for each in printed]
    ours = runs["ours", INTERVAL_S]
    return Result(
        title="Load balance by heavy blocks: the counting model",
        paper="P1 1.4 and 2.2, Table 2, Fig 6 and 7 (counting model)",
        how=" ".join(HOW.split()).format(
            interval=INTERVAL_S,
            needed=interval_needed(PEERS[4]),
            needed_6=interval_needed(PEERS[5]),
            one=gain_bound(PEERS, stuck=[4]),
            two=gain_bound(PEERS, stuck=[4, 7]),
            other=gain_bound(PEERS, stuck=[3, 4]),
            intervals=RATES_INTERVALS,
            draws=DRAWS,
            draws_interval=DRAWS_INTERVAL_S,
            least=min(gains),
            most=max(gains),
            median=median(gains),
        ),
        seed=seed,
        findings=[
            *_findings(ours, without, fewer, fewer_without),
            Finding(
                what=f"by the rules as printed: more pages, 24 h, median of {DRAWS} draws of node IDs (%)",
                ours=median(gains),
                theirs=33.3,
                bound=gain_bound(PEERS),
            ),
            *(
                Finding(
                    what=f"W by the bounds for {within} T of {at:g} s: more pages with shedding, 24 h (%)",
                    ours=gain(result, without),
                    theirs=33.3,
                    bound=gain_bound(PEERS),
                )
                for (at, within), result in sized.items()
            ),
        ],
        tables=(_peers(ours, without), _policies(runs, sized, without), _stuck(printed, without)),
        figures=figures(ours, without, fewer, printed),
    )


def gain(run: LevelRun, without: LevelRun, until: float = DAY_S) -> float:
    """Return by how many percent more pages a run had crawled than the one without shedding."""
    return 100 * (_pages(run, until) / _pages(without, until) - 1)


def _pages(run: LevelRun, until: float) -> int:
    return sum(sample.pages for sample in run.samples if sample.ends_at <= until)


def _growth(run: LevelRun) -> float:
    return (run.pending - run.pending_settled) / (DAY_S - SETTLED_S)


def _findings(ours: LevelRun, without: LevelRun, fewer: LevelRun, fewer_without: LevelRun) -> list[Finding]:
    excess = sum(peer.arrivals - peer.crawls for peer in PEERS)
    alone = sum(max(0.0, peer.arrivals - peer.crawls) for peer in PEERS)
    return [
        Finding(
            what="more pages with shedding, 24 h (%)",
            ours=gain(ours, without),
            theirs=33.3,
            bound=gain_bound(PEERS),
            least=55.0,
        ),
        Finding(what="light peers made heavy by a taken block", ours=ours.flipped, theirs=0, most=0),
        Finding(
            what="lowest load ratio of a light peer, at any instant",
            ours=min(ours.lowest[peer] for peer in light()),
            least=0.5,
        ),
        Finding(
            what="highest load ratio of a light peer, at any instant",
            ours=max(ours.highest[peer] for peer in light()),
            most=1.2,
        ),
        Finding(what="growth of the backlog with shedding (URL/s)", ours=_growth(ours), bound=excess),
        Finding(what="growth of the backlog without (URL/s)", ours=_growth(without), bound=alone),
        Finding(
            what=f"arrivals x {FEWER}: highest load ratio of any peer, at any instant",
            ours=max(fewer.highest),
            most=1.5,
        ),
        Finding(
            what=f"arrivals x {FEWER}: more pages with shedding, 24 h (%)",
            ours=gain(fewer, fewer_without),
            bound=gain_bound(PEERS, FEWER),
        ),
        Finding(what="offers and blocks sent for a page", ours=_sent(ours) / ours.pages),
        Finding(what="questions for a level, for a page", ours=ours.messages.questions / ours.pages),
        Finding(
            what=f"arrivals x {FEWER}: questions for a level, for a page",
            ours=fewer.messages.questions / fewer.pages,
        ),
    ]


def _sent(run: LevelRun) -> int:
    return 2 * run.messages.offers + run.messages.blocks


def _peers(ours: LevelRun, without: LevelRun) -> Table:
    return Table(
        title="Table 2 and what became of it (pages in 24 h, mean load ratio of the last 10 min)",
        heading=(
            "peer",
            "v",
            "lambda",
            "W",
            "needs T beyond (s)",
            "pages without",
            "pages with",
            "ratio without",
            "ratio with",
        ),
        rows=[
            (
                number + 1,
                peer.crawls,
                peer.arrivals,
                peer.blocks_wide * BLOCK,
                round(interval_needed(peer)),
                without.crawled[number],
                ours.crawled[number],
                without.samples[-1].ratios[number],
                ours.samples[-1].ratios[number],
            )
            for number, peer in enumerate(PEERS)
        ],
    )


def _policies(
    runs: dict[tuple[Policy, float], LevelRun], sized: dict[tuple[float, int], LevelRun], without: LevelRun
) -> Table:
    rows = [(policy, interval_s, "Table 2", result) for (policy, interval_s), result in runs.items()]
    rows += [("ours", at, f"by the bounds, {within} T", result) for (at, within), result in sized.items()]
    return Table(
        title="The same day with other intervals, by the rules as printed, and with work areas as measured",
        heading=(
            "rules",
            "T (s)",
            "W",
            "gain in 2 h (%)",
            "gain in 24 h (%)",
            "light made heavy",
            "lowest light ratio",
            "highest light ratio",
            "blocks moved",
            "questions a page",
        ),
        rows=[
            (
                policy,
                interval_s,
                width,
                gain(result, without, EARLY_S),
                gain(result, without),
                result.flipped,
                min(result.lowest[peer] for peer in light()),
                max(result.highest[peer] for peer in light()),
                result.messages.blocks,
                result.messages.questions / result.pages,
            )
            for policy, interval_s, width, result in rows
        ],
    )


def _stuck(printed: Sequence[LevelRun], without: LevelRun) -> Table:
    """Return a table of the heavy peers that kept most of the URLs they would have had alone."""
    rows = []
    for draw, each in enumerate(printed, 1):
        left = [ratio * peer.blocks_wide * BLOCK for ratio, peer in zip(each.samples[-1].ratios, PEERS, strict=True)]
        stuck = [
            number
            for number, (urls, peer) in enumerate(zip(left, PEERS, strict=True), 1)
            if peer.arrivals > peer.crawls and urls > (peer.arrivals - peer.crawls) * DAY_S / 2
        ]
        names = ", ".join(map(str, stuck))
        rows.append((draw, names or "none", gain_bound(PEERS, stuck=stuck), gain(each, without), each.flipped))
    return Table(
        title=f"The rules as printed, T = {DRAWS_INTERVAL_S:g} s, with node IDs drawn anew: a gain by who is stuck",
        heading=("draw", "peers stuck", "with these stuck from the start (%)", "gain in 24 h (%)", "light made heavy"),
        rows=rows,
    )
