"""The assigners of P1 and P3 side by side, by the three properties P3 wants: balance, monotonicity, consistency."""

from .assigners import H, XorShedding
from .double_hashing import lost_with_two, owned_backups
from .experiment import Figure, Finding, Progress, Result, Series, Table
from .joining import Cell
from .properties import COMPARED, LAG_S, SESSION_S, URLS, Balance, Measured, measure
from .workload import SITES

TWO_LEVEL, XOR, SHEDDING = "two-level hash", "XOR owner", "XOR owner + shedding"


def assignment(seed: int, progress: Progress) -> Result:
    """Compare the assigners."""
    found = measure(seed, progress)
    shed_most = (XorShedding.work_area(URLS, COMPARED) + H - 1) / (URLS / COMPARED)
    here, least = found.sites[COMPARED], 100 * found.least[COMPARED]
    same = owned_backups(seed)
    return Result(
        title="Who crawls which URL: seven assigners",
        paper="P3: the two-level hash and its three wanted properties; P1 1.2",
        how=(
            f"n peers are alive of 5n/4 possible ones. There are {URLS:,} URLs on {SITES:,} sites of Zipf sizes, the "
            f"largest with {found.largest_site:.1%} of them; or with uniform keys, each a site by itself. Hashes and "
            "rings look at the URL alone: they spread every site over all peers, who would have to keep its manners "
            "together. XOR keeps a site at one peer, so the largest site bounds its balance until blocks are shed. "
            f"Shedding decides by kadcrawl.balance, once, for peers of equal power, with H = {H} and W = the mean in "
            "whole blocks and one more. What it moves needlessly are blocks of a peer that leaves, which fall back to "
            "the next owner, and what the new levels set in motion. "
            f"Monotonicity: each of {COMPARED} peers leaves once, and is once the last to join. Consistency: peers "
            f"stay {SESSION_S:,.0f} s and are away {SESSION_S / 4:,.0f} s in the mean; everybody hears of it in "
            f"its own time, after {LAG_S:g} s in the mean (all exponential); two are asked where they would send the "
            "same URLs. The least is what equal shares would leave; an assigner whose leavers and joiners happen to "
            "have less than their share can be below it. The two-level hash takes one hash for both levels, as "
            "printed, so the load of the dead spreads evenly only if a and the number alive have no common factor."
        ),
        seed=seed,
        findings=[
            Finding(
                what=f"URLs of others that move when one of {COMPARED} leaves, %: XOR owner",
                ours=100 * found.left[XOR][1],
                bound=0.0,
                most=0.0,
            ),
            Finding(
                what=f"URLs that move to others than the joiner when {COMPARED} are reached, %: XOR owner",
                ours=100 * found.joined[XOR][1],
                bound=0.0,
                most=0.0,
            ),
            Finding(
                what=f"URLs of others that move when one of {COMPARED} leaves, %: two-level hash",
                ours=100 * found.left[TWO_LEVEL][1],
                bound=0.0,
            ),
            Finding(
                what=f"URLs two of {COMPARED} peers disagree about during churn, %: XOR owner",
                ours=100 * found.disagreed[COMPARED][XOR],
                bound=least,
                most=1.5 * least,
            ),
            Finding(
                what=f"URLs two of {COMPARED} peers disagree about during churn, %: two-level hash",
                ours=100 * found.disagreed[COMPARED][TWO_LEVEL],
                bound=least,
            ),
            Finding(what="URLs whose backup is their owner, 8 peers, second hash as printed, %", ours=100 * same),
            Finding(what="URLs lost with two of 8 peers, second hash as printed, %", ours=100 * lost_with_two(same)),
            Finding(
                what=f"busiest / mean, {COMPARED} peers, URLs of sites: two-level hash",
                ours=here[TWO_LEVEL].ratio,
                bound=1.0,
            ),
            Finding(
                what=f"busiest / mean, {COMPARED} peers, URLs of sites: XOR owner",
                ours=here[XOR].ratio,
                bound=found.largest_site * COMPARED,
            ),
            Finding(
                what=f"busiest / mean, {COMPARED} peers, URLs of sites: XOR owner + shedding",
                ours=here[SHEDDING].ratio,
                bound=1.0,
                most=shed_most,
            ),
        ],
        tables=[
            _properties(found),
            _balance_table("Balance, URLs of sites", found.sites),
            _balance_table("Balance, uniform keys", found.uniform),
            _consistency(found),
            _two_level(found),
        ],
        figures=[
            _bars("balance-sites", "Busiest peer over the mean, URLs of sites", found.sites),
            _bars("balance-uniform", "Busiest peer over the mean, uniform keys", found.uniform),
            Figure(
                name="moves",
                title=f"What one of {COMPARED} peers that comes or goes sets in motion",
                x="assigner",
                y="% of the URLs",
                series=[
                    Series(label=label, xs=list(shares), ys=[100 * share for share in shares.values()])
                    for label, shares in (
                        ("moved by a leaver", {name: share for name, (share, _) in found.left.items()}),
                        ("moved by a joiner", {name: share for name, (share, _) in found.joined.items()}),
                        ("disagreed about during churn", found.disagreed[COMPARED]),
                    )
                ],
                kind="bars",
            ),
        ],
    )


def _properties(found: Measured) -> Table:
    rows: list[list[Cell]] = []
    for name, lying in found.sites[COMPARED].items():
        shares = (*found.left[name], *found.joined[name], found.disagreed[COMPARED][name])
        rows.append([name, lying.ratio, lying.gini, round(lying.site_peers), *(100 * share for share in shares)])
    ideal = (1 / COMPARED, 0.0, 1 / COMPARED, 0.0, found.least[COMPARED])
    rows.append(["ideal", 1.0, 0.0, 1, *(100 * share for share in ideal)])
    return Table(
        title=f"Balance, monotonicity, consistency: {COMPARED} peers, URLs of sites",
        heading=[
            "assigner",
            "busiest / mean",
            "Gini",
            "peers on largest site",
            "leaver moves, %",
            "needless, %",
            "joiner moves, %",
            "needless, %",
            "disagreed, %",
        ],
        rows=rows,
    )


def _balance_table(title: str, balances: dict[int, dict[str, Balance]]) -> Table:
    names = list(balances[COMPARED])
    return Table(
        title=title,
        heading=[
            "assigner",
            *(f"{what}, {alive:,} peers" for alive in balances for what in ("busiest / mean", "Gini")),
        ],
        rows=[
            [name, *(part for by_name in balances.values() for part in (by_name[name].ratio, by_name[name].gini))]
            for name in names
        ],
    )


def _consistency(found: Measured) -> Table:
    rows: list[list[Cell]] = [
        [name, *(100 * by_name[name] for by_name in found.disagreed.values())] for name in found.left
    ]
    return Table(
        title="Consistency: URLs two peers disagree about during churn, %",
        heading=["assigner", *(f"{alive:,} peers" for alive in found.disagreed)],
        rows=[*rows, ["least", *(100 * share for share in found.least.values())]],
    )


def _two_level(found: Measured) -> Table:
    return Table(
        title=f"Two-level hash: {COMPARED} alive of a possible nodes",
        heading=["a", "busiest / mean", "Gini", "leaver moves needlessly, %", "share not alive, %"],
        rows=[
            [possible, lying.ratio, lying.gini, 100 * needless, 100 * (1 - COMPARED / possible)]
            for possible, lying, needless in found.two_level
        ],
    )


def _bars(name: str, title: str, balances: dict[int, dict[str, Balance]]) -> Figure:
    return Figure(
        name=name,
        title=title,
        x="assigner",
        y="busiest / mean",
        series=[
            Series(label=f"{alive:,} peers", xs=list(by_name), ys=[one.ratio for one in by_name.values()])
            for alive, by_name in balances.items()
        ],
        kind="bars",
        logarithmic="y",
    )
