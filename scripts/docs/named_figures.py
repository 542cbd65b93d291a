"""Single figures that stand in a sentence or a cell of a table, each with a name.

A page has `<!-- figure: NAME -->` and `<!-- end figure -->` in one line. What stands between is written by
`python -m scripts.docs`.

Tests: tests/docs/test_figures.py
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from scripts.docs.figure_blocks import KeptFigures

XOR_BALANCE: Final = "busiest / mean, 100 peers, URLs of sites: XOR owner"
NEEDLESS: Final = "URLs of others that move when one of 100 leaves, %: "
DISAGREED: Final = "URLs two of 100 peers disagree about during churn, %: "
LARGEST_RANGE: Final = "largest range / mean, 100 peers, d = "


def _finding(
    experiment: str, what: str, form: str, column: str = "ours", file: str = "papers"
) -> Callable[[KeptFigures], str]:
    """Return a function to the formatted finding of an experiment of the papers."""

    def read(kept: KeptFigures) -> str:
        values = [found[column] for found in kept[file][experiment]["findings"] if found["what"] == what]
        if len(values) != 1:
            raise ValueError(f"the experiment {experiment} has {len(values)} findings {what!r}")
        return format(values[0], form)

    return read


def _cell(experiment: str, table: str, row: str | int, column: str, form: str) -> Callable[[KeptFigures], str]:
    """Return a function to the formatted cell of a table of the papers' experiments."""

    def read(kept: KeptFigures) -> str:
        found = next(each for each in kept["papers"][experiment]["tables"] if each["title"] == table)
        values = next(each for each in found["rows"] if each[0] == row)
        return format(values[found["heading"].index(column)], form)

    return read


def _examined(kept: KeptFigures) -> list[float]:
    """Return the cells that were examined for each cell that moved, least first."""
    counts: list[Mapping[str, Any]] = kept["bench-moves"]["cells"]
    return sorted(
        (one["looks_held"] + one["looks_watched"]) / (one["moved_held"] + one["moved_watched"])
        for one in counts
        if one["moved_held"] + one["moved_watched"]
    )


def _over_bound(balance: str) -> Callable[[KeptFigures], str]:
    """Return a function to the time of five unequal peers, in times the least possible."""
    return lambda kept: f"{kept['five-peers']['crawls'][balance]['over_bound']:.2f}"


def _core_pages(kept: KeptFigures) -> str:
    """Return the pages that one core fetches in a second, with one peer and no delay."""
    return f"{1000 / kept['bench']['crawlers']['kadcrawl, 1 peer']['cpu_s_per_1000']:,.0f}"


def _web_share(viewed: str, not_viewed: str) -> Callable[[KeptFigures], str]:
    """Return a function to the part of a core that a dashboard costs: the difference of two measured parts."""
    return lambda kept: f"{max(0.0, kept['bench-web'][viewed] - kept['bench-web'][not_viewed]):.1%}"


DRAIN_FIGURES: Final = {
    "output": "output by drain, of that by a sample, {peers} peers",
    "questions": "questions for a page by drain, of those by a sample, {peers} peers",
    "output-printed": "output by drain, of that by the level as printed, {peers} peers",
}
BALANCE_ROWS: Final = {
    "off": "off",
    "printed": "level as printed",
    "level": "level",
    "sample": "drain by a sample",
    "drain": "drain",
}
BALANCE_COLUMNS: Final = {
    "output": ("pages / s / peer", ".2f"),
    "questions": ("questions / page", ".2f"),
    "lent": ("URLs lent / page", ".2f"),
    "moves": ("most moves of a page", "d"),
    "refused": ("loans refused", "d"),
}
LEAVES_WORLD: Final = "(1 peer, 4 leaves, delay 1 s)"
SOLVERS: Final = "What a solution costs on predicted times (swarm: 3000 rounds)"
DIVISIONS: Final = "What the division of 50 blocks costs a peer of a crawl, mean of 20 draws"
FIXED_FILTERS: Final = "k = 6: the least power of 2 that stays below 1e-4, and what it errs"

NAMED: Final[Mapping[str, Callable[[KeptFigures], str]]] = {
    "busiest": _finding("assignment", XOR_BALANCE, ".1f"),
    "busiest-least": _finding("assignment", XOR_BALANCE, ".1f", "bound"),
    "busiest-lending": _finding("assignment", f"{XOR_BALANCE} + shedding", ".2f"),
    "busiest-two-level": _finding("assignment", "busiest / mean, 100 peers, URLs of sites: two-level hash", ".2f"),
    "needless": _finding("assignment", f"{NEEDLESS}XOR owner", ".3g"),
    "needless-two-level": _finding("assignment", f"{NEEDLESS}two-level hash", ".1f"),
    "disagreed": _finding("assignment", f"{DISAGREED}XOR owner", ".2f"),
    "disagreed-least": _finding("assignment", f"{DISAGREED}XOR owner", ".2f", "bound"),
    "disagreed-two-level": _finding("assignment", f"{DISAGREED}two-level hash", ".1f"),
    "owned-backups": _finding(
        "assignment", "URLs whose backup is their owner, 8 peers, second hash as printed, %", ".1f"
    ),
    "lost-with-two": _finding("assignment", "URLs lost with two of 8 peers, second hash as printed, %", ".1f"),
    "offers": _finding("messages", "offers of links, of the paper's requests, 8 peers", ".3f"),
    "offered-urls": _finding("messages", "URLs in them, of the paper's, 8 peers", ".3f"),
    "copies": _finding("messages", "the same with copies, requests, 8 peers", ".2f"),
    "copied-urls": _finding("messages", "the same with copies, URLs, 8 peers", ".2f"),
    "offers-lending": _finding(
        "messages", "offers of links, of the paper's requests, 8 peers that shed (drain)", ".3f"
    ),
    "offered-urls-lending": _finding("messages", "URLs in them, of the paper's, 8 peers that shed (drain)", ".3f"),
    "copies-lending": _finding("messages", "the same with copies, requests, 8 peers that shed (drain)", ".2f"),
    "copied-urls-lending": _finding("messages", "the same with copies, URLs, 8 peers that shed (drain)", ".2f"),
    "messages-lending": _finding(
        "messages", "messages of a crawl with shedding by level, of one without, 8 peers", ".2f"
    ),
    **{
        f"own-rates-{policy}": _finding(
            "table2-unscaled",
            f"{policy}: messages of all kinds in the same time, of those without lending",
            ".2f",
            file="table2-unscaled",
        )
        for policy in ("level", "drain")
    },
    "range-random": _finding("joining", f"{LARGEST_RANGE}1", ".2f"),
    "range-eight": _finding("joining", f"{LARGEST_RANGE}8", ".2f"),
    "range-best": _finding("joining", f"{LARGEST_RANGE}8", ".2f", "bound"),
    "gain": _finding("levels", "more pages with shedding, 24 h (%)", "+.1f"),
    "gain-paper": _finding("levels", "more pages with shedding, 24 h (%)", "+.1f", "theirs"),
    "gain-optimum": _finding("levels", "more pages with shedding, 24 h (%)", "+.1f", "bound"),
    "gain-as-printed": _finding(
        "levels", "by the rules as printed: more pages, 24 h, median of 8 draws of node IDs (%)", "+.1f"
    ),
    "gain-one-interval": _finding(
        "levels", "W by the bounds for 1 T of 200 s: more pages with shedding, 24 h (%)", "+.1f"
    ),
    "gain-six-intervals": _finding(
        "levels", "W by the bounds for 6 T of 200 s: more pages with shedding, 24 h (%)", "+.1f"
    ),
    **{
        f"table2-{name}": _finding("table2", f"{policy}: more pages with lending, 1 h (%)", "+.1f")
        for name, policy in {"printed": "level as printed", "level": "level", "drain": "drain"}.items()
    },
    **{
        f"table2-{name}-full": _finding(
            "table2", f"{policy}: more pages with lending, 4 h (%)", "+.1f", file="papers-full"
        )
        for name, policy in {"printed": "level as printed", "level": "level", "drain": "drain"}.items()
    },
    **{
        f"drain-{name}-{peers}": _finding("balancing", what.format(peers=peers), ".2f")
        for peers in (8, 64)
        for name, what in DRAIN_FIGURES.items()
    },
    **{
        f"drain-{name}-256": _finding(
            "balancing-256", DRAIN_FIGURES[name].format(peers=256), form, file="balancing-256"
        )
        for name, form in {"output": ".2f", "questions": ".3f"}.items()
    },
    **{
        f"balance-{policy}-{column}-{peers}": _cell("balancing", table, row, heading, form)
        for peers, table in {8: "8 peers, 800 pages", 64: "64 peers, 6,400 pages"}.items()
        for policy, row in BALANCE_ROWS.items()
        for column, (heading, form) in BALANCE_COLUMNS.items()
    },
    "predicted-s": _finding("powers", "BP + exact, warm: makespan, s", ".1f"),
    "predicted-cold-s": _finding("powers", "BP + exact, cold: makespan, s", ".1f"),
    "predicted-printed-s": _finding("powers", "BP + exact, warm, powers as printed: makespan, s", ".1f"),
    "predicted-printed-cold-s": _finding("powers", "BP + exact, cold, powers as printed: makespan, s", ".1f"),
    "predicted-aim-s": _finding("powers", "BP + exact, warm: makespan, s", ".1f", "most"),
    "lending-s": _finding("powers", "shedding: makespan, s", ".1f"),
    "bound-s": _finding("powers", "shedding: makespan, s", ".0f", "bound"),
    "equal-s": _finding("powers", "equal shares: makespan, s", ".0f"),
    "swarm-solver": _cell("powers", SOLVERS, "swarm", "times worked out", ",d"),
    "exact-solver": _cell("powers", SOLVERS, "exact", "times worked out", ",d"),
    "leaf-connections": _finding(
        "leaves", f"connections that leaves open per page, of those of first come {LEAVES_WORLD}", ".2f"
    ),
    "leaf-robots": _finding(
        "leaves", f"robots.txt that leaves ask for per page, of those of first come {LEAVES_WORLD}", ".2f"
    ),
    "leaf-duration": _finding("leaves", "duration of the crawl, of that of first come, the worst of all", ".2f"),
    "division-exact": _cell("powers", DIVISIONS, 16, "exact: times worked out", ",d"),
    "division-swarm": _cell("powers", DIVISIONS, 16, "swarm, 100 rounds: times worked out", ",d"),
    "division-ratio": _cell("powers", DIVISIONS, 16, "makespan to exact, ratio", ".2f"),
    "filter-bytes": _finding("expiring", "bytes of a URL in a slice, all three to 1e-4", ".2f"),
    "filter-bytes-least": _finding("expiring", "bytes of a URL in a slice, all three to 1e-4", ".2f", "bound"),
    "filter-error": _finding("expiring", "error of all three slices, 100,000 URLs a day, by the bits", ".1g"),
    "filter-one": _cell("expiring", FIXED_FILTERS, 40_000, "one filter, by the bits", ".1e"),
    "filter-any": _cell("expiring", FIXED_FILTERS, 40_000, "any of three days, counted", ".1e"),
    "revisits-early": _finding("revisits", "posts fetched again within three days", "d"),
    "revisits-again": _finding("revisits", "posts fetched again once three days were over, share", ".2f"),
    "revisits-error": _finding(
        "revisits", "new keys taken for known, share: filters of running peers, by the bits", ".1g"
    ),
    "examined-least": lambda kept: f"{_examined(kept)[0]:.2f}",
    "examined-most": lambda kept: f"{_examined(kept)[-1]:.2f}",
    "core-pages": _core_pages,
    "web-idle": _web_share("idle_share", "idle_share_without"),
    "web-viewed": _web_share("share_viewed", "share"),
    "five-predictive": _over_bound("predictive"),
    "five-drain": _over_bound("shedding"),
}
"""Functions from the kept files to the text of one figure."""
