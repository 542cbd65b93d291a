"""The pictures of load balance by heavy blocks (P1 Fig 6 and 7)."""

from collections.abc import Sequence
from itertools import accumulate

from .experiment import Figure, Series
from .level_model import LevelRun
from .table2 import PEERS, gain_bound


def figures(ours: LevelRun, without: LevelRun, fewer: LevelRun, printed: Sequence[LevelRun]) -> list[Figure]:
    """Return all of them: for our rules, no shedding, our rules with fewer arrivals, and the rules as printed."""
    return [
        _ratios("levels-ratio-without", "Load ratio without shedding (Fig 6a)", without, logarithmic=True),
        _ratios("levels-ratio-with", "Load ratio with shedding (Fig 6b)", ours, logarithmic=True),
        _ratios("levels-ratio-fewer", "Load ratio with shedding, fewer arrivals", fewer, logarithmic=False),
        Figure(
            name="levels-output",
            title="Output (Fig 7)",
            x="hours",
            y="pages / s",
            series=[
                Series(label="with shedding", xs=_hours(ours), ys=_speeds(ours)),
                Series(label="without", xs=_hours(without), ys=_speeds(without)),
                Series(label="all power", xs=(0, 24), ys=[sum(peer.crawls for peer in PEERS)] * 2, dashed=True),
            ],
        ),
        Figure(
            name="levels-gain",
            title="Gain in pages crawled since the start",
            x="hours",
            y="%",
            series=[
                Series(label="ours", xs=_hours(ours), ys=_gains(ours, without)),
                *(
                    Series(label=f"as printed, draw {draw}", xs=_hours(each), ys=_gains(each, without))
                    for draw, each in enumerate(printed, 1)
                ),
                Series(label="theirs, at most", xs=(0, 24), ys=(33.3, 33.3), dashed=True),
                Series(label="bound", xs=(0, 24), ys=[gain_bound(PEERS)] * 2, dashed=True),
            ],
        ),
        Figure(
            name="levels-messages",
            title="Messages in 10 min: each URL that arrives is one",
            x="hours",
            y="messages",
            series=[
                Series(label="without", xs=_hours(without), ys=[sample.arrived for sample in without.samples]),
                Series(
                    label="with, offers and blocks",
                    xs=_hours(ours),
                    ys=[
                        sample.arrived + 2 * sample.messages.offers + sample.messages.blocks for sample in ours.samples
                    ],
                ),
                Series(
                    label="with, offers, blocks and questions for levels",
                    xs=_hours(ours),
                    ys=[sample.arrived + sample.messages.all for sample in ours.samples],
                ),
            ],
        ),
    ]


def _ratios(name: str, title: str, run: LevelRun, *, logarithmic: bool) -> Figure:
    return Figure(
        name=name,
        title=title,
        x="hours",
        y="pending / W",
        logarithmic="y" if logarithmic else "",
        series=[
            Series(label=f"peer {number + 1}", xs=_hours(run), ys=[sample.ratios[number] for sample in run.samples])
            for number in range(len(PEERS))
        ],
    )


def _hours(run: LevelRun) -> list[float]:
    return [sample.ends_at / 3600 for sample in run.samples]


def _speeds(run: LevelRun) -> list[float]:
    return [sample.pages / sample.lasted_s for sample in run.samples]


def _gains(run: LevelRun, without: LevelRun) -> list[float]:
    """Return the cumulative gains in percent. Both runs were sampled at the same instants."""
    pages, least = (list(accumulate(sample.pages for sample in each.samples)) for each in (run, without))
    return [100 * (more / less - 1) for more, less in zip(pages, least, strict=True)]
