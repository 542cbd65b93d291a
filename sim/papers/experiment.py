"""The result of an experiment: findings beside the paper's own, tables, and figures as data. No drawing here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One number of ours beside theirs."""

    what: str
    """The measured quantity with its unit, as the report shows it."""
    ours: float
    theirs: float | None = None
    """The number that the paper prints, or None."""
    bound: float | None = None
    """The theoretical optimum."""
    least: float | None = None
    """The target: ours must be at least this, ..."""
    most: float | None = None
    """... and no more than this."""

    @property
    def reached(self) -> bool | None:
        """True if ours meets the target. None: there is no target."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or self.ours >= self.least) and (self.most is None or self.ours <= self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, or one set of bars."""

    label: str
    xs: Sequence[float] | Sequence[str]
    """Numbers for a line, or names for bars."""
    ys: Sequence[float]
    dashed: bool = False
    """True for bounds and for the paper's own values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One picture."""

    name: str
    """The name of the file, without the ending."""
    title: str
    x: str
    y: str
    series: Sequence[Series]
    kind: Literal["line", "bars"] = "line"
    logarithmic: Literal["", "x", "y", "xy"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a heading. Each cell is shown as given, and floats with three significant digits."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str | int | float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one experiment."""

    title: str
    paper: str
    """The place in the papers, for example "P1 2, Table 2, Fig 6 and 7"."""
    how: str
    """The method of this experiment and its assumptions, in one paragraph."""
    seed: int
    findings: Sequence[Finding]
    fitted: bool = False
    """True if constants of this experiment are fitted to numbers that the paper prints. Every number is then marked."""
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()


Progress = Callable[[float], None]
"""A callback that gets the finished share of the work, from 0 to 1."""
Experiment = Callable[[int, Progress], Result]
"""(seed, progress) -> result. The same seed gives the same result."""
