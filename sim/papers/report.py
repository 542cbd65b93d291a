"""The report of the experiments as a page, as Markdown, as JSON, and as pictures. Results in, files out.

The page is the rendered Markdown with the pictures in it. The same results give the same bytes: the report does not
depend on the time or the machine.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from markdown_it import MarkdownIt

from .drawing import draw, inline, standing_alone
from .experiment import Finding, Result, Table

TITLE = "The papers' experiments, theirs and ours"
INTRODUCTION = (
    "Experiments of the papers behind kadcrawl, done again with its own code. *Theirs* is what the paper prints, "
    "*ours* what was measured or computed here, *bound* what theory allows at best, *to reach* what was asked of "
    "kadcrawl. A dash stands for what there is not. *Fitted* marks what comes from a model with constants that were "
    "fitted to the paper's own numbers, so that agreement there is no evidence."
)
NONE = "–"
FITTED = "*fitted*"
YES, NO = "✓ yes", "✗ no"
STYLE = """
:root { color-scheme: light dark; --ink: #1b1c1e; --soft: #5c6066; --line: #d9dce0; --page: #fff; --band: #f6f7f8;
  --yes: #1a7f45; --no: #b3261e; --link: #1f5fa8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e8; --soft: #a0a6ad; --line: #3a3e43; --page: #16181a;
  --band: #1f2225; --yes: #5cc98a; --no: #ff8a80; --link: #7fb2ec } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 54rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0 1rem }
h2 { font-size: 1.25rem; margin: 3rem 0 .3rem; padding-top: 1rem; border-top: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem }
p { margin: .5rem 0 1rem }
a { color: var(--link) }
.table { overflow-x: auto; margin: .4rem 0 1.2rem }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.35; min-width: 100% }
th, td { padding: .32rem .5rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; border-bottom-width: 2px; min-width: 3.8rem }
td { font-variant-numeric: tabular-nums }
td:first-child:not([style]) { min-width: min(11.5rem, 40vw) }
tbody tr:nth-child(even) { background: var(--band) }
.yes { color: var(--yes); white-space: nowrap } .no { color: var(--no); font-weight: 600; white-space: nowrap }
figure { margin: 1.4rem 0; max-width: 44rem }
svg { display: block; width: 100%; height: auto }
"""


def write(results: Mapping[str, Result], directory: Path) -> list[Path]:
    """Write report.html, report.md, results.json and an SVG file for each figure. Return the files.

    `results` are those of the experiments, by name. Raises ValueError if two figures have one name, or a figure is
    empty.
    """
    figures = [figure for result in results.values() for figure in result.figures]
    if len({figure.name for figure in figures}) < len(figures):
        raise ValueError("each figure needs a name of its own")
    drawn = {figure.name: draw(figure) for figure in figures}
    titles = {figure.name: figure.title for figure in figures}
    text = markdown(results)
    files = {
        "report.html": page(text, {name: inline(svg, name, escape(titles[name])) for name, svg in drawn.items()}),
        "report.md": text,
        "results.json": json(results),
        **{f"{name}.svg": standing_alone(svg) for name, svg in drawn.items()},
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_text(content, encoding="utf-8", newline="\n")
    return [directory / name for name in files]


def json(results: Mapping[str, Result]) -> str:
    """Return the results as JSON, each finding with whether it was reached."""
    plain: dict[str, Any] = msgspec.to_builtins(dict(results), enc_hook=_plain)
    for name, result in results.items():
        for entry, finding in zip(plain[name]["findings"], result.findings, strict=True):
            entry["reached"] = finding.reached
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n"


def markdown(results: Mapping[str, Result]) -> str:
    """Return the report as Markdown, with links to the SVG files."""
    blocks = [f"# {TITLE}", INTRODUCTION, _overview(results)]
    for name, result in results.items():
        mark = f" {FITTED}" if result.fitted else ""
        blocks += [
            f'<a id="{escape(name)}"></a>',
            f"## {_text(result.title)}",
            f"*{_text(result.paper)}* · seed {result.seed}",
            _text(result.how),
            _findings(result.findings, mark),
        ]
        for table in result.tables:
            blocks += [f"### {_text(table.title)}{mark}", _table(table)]
        blocks += [f"![{_text(figure.title)}]({figure.name}.svg){mark}" for figure in result.figures]
    return "\n\n".join(block for block in blocks if block) + "\n"


def page(text: str, pictures: Mapping[str, str]) -> str:
    """Return the Markdown as a self-contained HTML page. `pictures` are the SVGs by figure."""
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    body = re.sub(
        r'<p><img src="([^"]+)\.svg"[^>]*>(.*?)</p>',
        lambda found: f"<figure>\n{pictures[found[1]]}{found[2]}</figure>",
        body,
    )
    body = body.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    body = body.replace(f">{YES}<", f'><span class="yes">{YES}</span><').replace(
        f">{NO}<", f'><span class="no">{NO}</span><'
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(TITLE)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def number(value: float) -> str:
    """Return a number as the tables show it: three digits that count, all those before the point, integers whole."""
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if not isfinite(value):
        return NONE if value != value else ("∞" if value > 0 else "-∞")
    if value == 0:
        return "0"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    shown = f"{value:#.3g}"
    return f"{value:.1e}" if "e" in shown else shown


# --- parts of it -----------------------------------------------------------------------------------------------------


def verdict(finding: Finding) -> str:
    """Return whether the target was reached, as text."""
    return NONE if finding.reached is None else YES if finding.reached else NO


def to_reach(finding: Finding) -> str:
    """Return the target as text."""
    if finding.least is not None and finding.most is not None:
        if finding.least == finding.most:
            return number(finding.least)
        return f"{number(finding.least)} to {number(finding.most)}"
    if finding.least is not None:
        return f"≥\N{NO-BREAK SPACE}{number(finding.least)}"
    return NONE if finding.most is None else f"≤\N{NO-BREAK SPACE}{number(finding.most)}"


def _overview(results: Mapping[str, Result]) -> str:
    rows = []
    for name, result in results.items():
        asked = [finding for finding in result.findings if finding.reached is not None]
        reached = sum(finding.reached is True for finding in asked)
        summary = f"{reached} of {len(asked)}" if asked else NONE
        all_reached = NONE if not asked else YES if reached == len(asked) else NO
        rows.append([f"[{_text(result.title)}](#{escape(name)})", _text(result.paper), summary, all_reached])
    return _rows(["experiment", "paper", "reached", "all"], rows, "llrl")


def _findings(findings: Sequence[Finding], mark: str) -> str:
    columns: list[tuple[str, str, list[str]]] = [
        ("", "l", [_text(finding.what) for finding in findings]),
        ("theirs", "r", [_or_none(finding.theirs) for finding in findings]),
        ("ours", "r", [f"**{number(finding.ours)}**{mark}" for finding in findings]),
        ("bound", "r", [_or_none(finding.bound) for finding in findings]),
        ("to reach", "r", [to_reach(finding) for finding in findings]),
        ("reached", "l", [verdict(finding) for finding in findings]),
    ]
    shown = [column for column in columns if any(cell != NONE for cell in column[2])]
    rows = [[column[2][row] for column in shown] for row in range(len(findings))]
    return _rows([column[0] for column in shown], rows, "".join(column[1] for column in shown)) if rows else ""


def _table(table: Table) -> str:
    """Return a table as Markdown. A column of numbers alone is aligned to the right."""
    rows = [[_text(cell) if isinstance(cell, str) else number(cell) for cell in row] for row in table.rows]
    numeric = [
        all(not isinstance(row[column], str) or row[column] in ("", NONE) for row in table.rows)
        for column in range(len(table.heading))
    ]
    return _rows([_text(head) for head in table.heading], rows, "".join("r" if one else "l" for one in numeric))


def _rows(heading: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> str:
    for row in rows:
        if len(row) != len(heading):
            raise ValueError(f"a row of {len(row)} cells under a heading of {len(heading)}")
    lines = [heading, ["---:" if one == "r" else "---" for one in align], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(words: str) -> str:
    """Return words as Markdown that shows them as they are."""
    return re.sub(r"([\\`*_{}\[\]<>|#~&])", r"\\\1", " ".join(words.split()))


def _or_none(value: float | None) -> str:
    return NONE if value is None else number(value)


def _plain(value: object) -> Any:
    """Return a plain number for one of numpy's, and a list for a range or an array."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | range):
        return list(value)
    raise NotImplementedError(f"{type(value).__name__} in a result")
