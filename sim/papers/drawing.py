"""Figures as SVG: the same bytes for the same figure, and no color of text that only one background bears.

All that is not data is drawn in one ink, on nothing. `standing_alone` puts white behind it; `inline` takes the ink of
the page.
"""

import io
import re
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from .experiment import Figure, Series

INK = "#1b1c1e"
WIDTH_IN = 6.4
HEIGHT_IN = 3.8
BAR_IN = 0.16
"""The width of a bar, and of the space between groups."""
COLORS = ("#3d7fc1", "#df7a2e", "#3c9d72", "#b65fa8", "#8c7f3b", "#7d86d6", "#c2504f", "#6d7a86", "#2f9fb0", "#a5633f")
"""Colors that are distinct on white and on black, and mostly for the color-blind. Lines differ in their marks too."""
PLOT_MARKERS = "osD^vPXh<>"
MARKS_MAX = 20
"""The most marks on a line."""
DASHES = ("--", ":", "-.")
DECADES_MAX = 3
"""The most decades of a logarithmic axis that has numbers at 2 and 5 as well."""
LABEL_CHARS_MAX = 60
"""The most characters of all names below upright bars together. With more, the bars lie and the names stand beside
them."""
LOOKS: dict[Any, Any] = {
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.15,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), INK
    ),
}


def draw(figure: Figure) -> str:
    """Return the SVG of one figure, without a background. Raises ValueError if there is nothing to draw."""
    if not figure.series or not all(len(one.xs) == len(one.ys) > 0 for one in figure.series):
        raise ValueError(f"figure {figure.name}: each series needs as many xs as ys, one at least")
    with mpl.rc_context({**LOOKS, "svg.hashsalt": figure.name}):
        canvas = Canvas(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
        axes = canvas.subplots()
        if figure.kind == "bars":
            _bars(canvas, axes, figure)
        else:
            _lines(axes, figure)
        axes.set_title(figure.title, pad=10)
        if len(figure.series) > 1:
            canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=_columns(figure.series))
        written = io.StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        canvas.savefig(written, format="svg", transparent=True, metadata=metadata)
    return written.getvalue()


def standing_alone(svg: str) -> str:
    """Return a picture as a file of its own, on a white background."""
    return re.sub(r"(<svg [^>]*>)", r'\1\n <rect width="100%" height="100%" fill="#ffffff"/>', svg, count=1)


def inline(svg: str, name: str, title: str) -> str:
    """Return a picture as a part of a page: in the page's text color, at full width, with IDs of its own."""
    body = svg[svg.index("<svg ") :].replace(INK, "currentColor")
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.S)
    body = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", body, count=1)
    return body.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)


def _columns(series: Sequence[Series]) -> int:
    longest = max(len(one.label) for one in series)
    return max(1, min(len(series), 84 // (longest + 8)))


def _lines(axes: Axes, figure: Figure) -> None:
    looks, dashes = zip(cycle(COLORS), cycle(PLOT_MARKERS), strict=False), cycle(DASHES)
    for one in figure.series:
        if one.dashed:
            axes.plot(one.xs, one.ys, label=one.label, color=INK, linestyle=next(dashes), linewidth=1.2, alpha=0.8)
        else:
            color, mark = next(looks)
            every = -(-len(one.xs) // MARKS_MAX)
            axes.plot(
                one.xs,
                one.ys,
                label=one.label,
                color=color,
                marker=mark,
                markersize=3.5,
                markevery=every,
                linewidth=1.4,
            )
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    _scale(axes.xaxis, "x" in figure.logarithmic)
    _scale(axes.yaxis, "y" in figure.logarithmic)
    if "y" not in figure.logarithmic and min(min(one.ys) for one in figure.series) >= 0:
        axes.set_ylim(bottom=0)


def _bars(canvas: Canvas, axes: Axes, figure: Figure) -> None:
    names = [str(name) for name in dict.fromkeys(name for one in figure.series for name in one.xs)]
    lying = sum(map(len, names)) > LABEL_CHARS_MAX
    thick = 0.8 / len(figure.series)
    colors = cycle(COLORS)
    for number, one in enumerate(figure.series):
        places = [names.index(str(name)) + (number - (len(figure.series) - 1) / 2) * thick for name in one.xs]
        look: dict[str, Any] = (
            {"facecolor": "none", "edgecolor": INK, "linestyle": "--"} if one.dashed else {"color": next(colors)}
        )
        draw_bar = axes.barh if lying else axes.bar
        draw_bar(places, one.ys, thick * 0.92, label=one.label, **look)
    if lying:
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(figure.y)
        canvas.set_figheight(max(HEIGHT_IN, 1.3 + BAR_IN * len(names) * (len(figure.series) + 1)))
    else:
        axes.set_xticks(range(len(names)), names)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel(figure.x)
        axes.set_ylabel(figure.y)
    _scale(axes.xaxis if lying else axes.yaxis, "y" in figure.logarithmic)


def _scale(axis: XAxis | YAxis, logarithmic: bool) -> None:
    """Set plain numbers on an axis. A logarithmic axis has them at 1, 2 and 5, or only at 1 if it is long."""
    if logarithmic:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        least, most = axis.get_view_interval()
        short = most <= least * 10**DECADES_MAX
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=20))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
