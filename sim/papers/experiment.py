"""What an experiment of the papers gives: findings beside the paper's own, and figures. Words only, no drawing here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One number of ours beside theirs."""

    what: str
    """With its unit, as the report shows it."""
    ours: float
    theirs: float | None = None
    """As the paper prints it; None if it has no such number."""
    bound: float | None = None
    """What theory allows at best."""
    least: float | None = None
    """To reach: ours must be no less, ..."""
    most: float | None = None
    """... and no more than this."""

    @property
    def reached(self) -> bool | None:
        """Whether ours is where it is to be; None if nothing was asked."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or self.ours >= self.least) and (self.most is None or self.ours <= self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, or one set of bars."""

    label: str
    xs: Sequence[float] | Sequence[str]
    """Numbers for a line; names for bars."""
    ys: Sequence[float]
    dashed: bool = False
    """For bounds and for what is theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One picture."""

    name: str
    """Of its file, without the ending."""
    title: str
    x: str
    y: str
    series: Sequence[Series]
    kind: Literal["line", "bars"] = "line"
    logarithmic: Literal["", "x", "y", "xy"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a heading; each cell is shown as it is, floats with three digits that count."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str | int | float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one experiment."""

    title: str
    paper: str
    """Where it stands, for example "P1 2, Table 2, Fig 6 and 7"."""
    how: str
    """How it was done here, and what was assumed: one paragraph."""
    seed: int
    findings: Sequence[Finding]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()


Progress = Callable[[float], None]
"""Told from time to time which share of the work, 0 to 1, is done."""
Experiment = Callable[[int, Progress], Result]
"""(seed, progress) -> what came of it; the same seed gives the same result."""
