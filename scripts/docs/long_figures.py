"""The tables and curves of long crawls: what a page costs as a crawl grows, and the soak under faults.

Tests: tests/docs/test_long_figures.py
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

SHORT: Final = "bench-long"
LONGEST: Final = "bench-long-million"
"""The kept files of a crawl that takes minutes, and of a crawl of a million pages."""
ROW_COUNT: Final = 8
"""Rows of the curve that the table shows."""
STAGES: Final = {
    "opened_s": "journal open",
    "entered_s": "entered the swarm",
    "cell_s": "first cell open",
    "request_s": "first request",
}
"""The stages of a start before its first page (scripts/bench_long.py)."""
PICTURE: Final = "docs/assets/long.svg"
WIDTH, HEIGHT, MARGIN = 360, 150, 46
"""The size of a panel, and of its margin, in pixels."""


class Panel(NamedTuple):
    """One curve of the picture."""

    name: str
    title: str


PANELS: Final = (
    Panel("cpu_s_per_1000", "CPU s per 1,000 pages, both peers"),
    Panel("rss_mb", "memory of both peers, MB"),
    Panel("wal_mb", "largest WAL so far, MB"),
    Panel("journal_bytes_per_url", "bytes of both journals per known URL"),
)


def bench_long(kept: Any) -> str:
    """Return the table of a long crawl, and of its stops and restarts."""
    return _long(kept, SHORT)


def bench_longest(kept: Any) -> str:
    """Return the same of a crawl of a million pages."""
    return _long(kept, LONGEST)


def _long(kept: Any, name: str) -> str:
    figures = kept[name]
    curve = figures["curve"]
    step = max(1, len(curve) // ROW_COUNT)
    shown = [*curve[step - 1 : -1 : step], curve[-1]]
    head = (
        "pages",
        "known URLs",
        "CPU s per 1,000 pages",
        "MB, both peers",
        "largest WAL, MB",
        "journal bytes per URL",
    )
    rows = [
        (
            f"{row['pages']:,.0f}",
            f"{row['known']:,.0f}",
            f"{row['cpu_s_per_1000']:.2f}",
            f"{row['rss_mb']:.0f}",
            f"{row['wal_mb']:.1f}",
            f"{row['journal_bytes_per_url']:.0f}",
        )
        for row in shown
    ]
    moments = {
        "stop": "`kadcrawl stop`: two peers, and one",
        "in a swarm": "first page after `kill -9`, beside the other peer",
        "alone": "first page after `kill -9`, alone",
    }
    times = [
        (
            title,
            ", ".join(f"{one['seconds']:.1f}" for one in figures[name]),
            ", ".join(f"{one['cpu_s']:.1f}" for one in figures[name] if "cpu_s" in one),
        )
        for name, title in moments.items()
    ]
    times += [
        (f"{stage} after `kill -9`, {name}", ", ".join(f"{one[key]:.1f}" for one in figures[name]), "")
        for name in ("in a swarm", "alone")
        for key, stage in STAGES.items()
        if key in figures[name][0]
    ]
    alone, web_pages = figures["curve alone"][-1], figures["hosts"] * figures["host_pages"]
    return (
        f"{curve[-1]['pages']:,.0f} pages by two peers, of a web of {web_pages:,} pages. "
        f"{figures['twice']:,} were fetched twice. The peer alone knew {alone['known']:,.0f} URLs when it was killed."
        f"\n\n{_table(head, rows, 0)}\n\n{_table(('', 'seconds, each time', 'CPU s'), times, 1)}\n\n"
        f"{kept.measured(name)}"
    )


def soak(kept: Any) -> str:
    """Return what a soak met, and the verdict on it."""
    figures = kept["soak"]
    events = ", ".join(f"{count} {kind}" for kind, count in sorted(figures["events"].items()))
    grown = [max((by[name] for by in figures["growths"]), default=0.0) for name in ("rss_mb", "files", "threads")]
    rows = [
        ("faults", events),
        ("pages, fetched, fetched twice", f"{figures['pages']:,}, {figures['fetched']:,}, {figures['twice']:,}"),
        ("processes", f"{figures['processes']:,}"),
        ("most memory of a process", f"{figures['rss_mb']:g} MB"),
        ("most open files, threads of a process", f"{figures['files']}, {figures['threads']}"),
        ("most growth of a process, from its first third to its last", "{:+g} MB, {:+g}, {:+g}".format(*grown)),
        ("largest WAL, largest journal", f"{figures['wal_mb']:g} MB, {figures['journal_mb']:g} MB"),
        ("broken promises", f"{len(figures['faults'])}"),
    ]  # fmt: skip
    minutes = f"{figures['minutes']:g} minutes of faults with seed {figures['seed']}."
    return f"{minutes}\n\n{_table(('', ''), rows, 2)}\n\n{kept.measured('soak')}"


def generate(root: Path) -> Mapping[str, str]:
    """Return the picture of the curves of the longest crawl that was measured."""
    for path in (root / f"docs/figures/{name}.json" for name in (LONGEST, SHORT)):
        if path.exists():
            return {PICTURE: picture(json.loads(path.read_text(encoding="utf-8"))["figures"]["curve"])}
    return {}


def picture(curve: Sequence[Mapping[str, float]]) -> str:
    """Return the curves over the pages as SVG, in two rows of two panels."""
    panels = [
        f'<g transform="translate({at % 2 * WIDTH},{at // 2 * HEIGHT})">{_drawn(curve, panel)}</g>'
        for at, panel in enumerate(PANELS)
    ]
    size = f'width="{2 * WIDTH}" height="{2 * HEIGHT}" viewBox="0 0 {2 * WIDTH} {2 * HEIGHT}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
            "<title>What a page costs as a crawl grows</title>",
            f'<rect width="{2 * WIDTH}" height="{2 * HEIGHT}" fill="white"/>',
            *panels,
            "</svg>\n",
        ]
    )


def _drawn(curve: Sequence[Mapping[str, float]], panel: Panel) -> str:
    most = max(row[panel.name] for row in curve) * 1.1 or 1.0
    pages = curve[-1]["pages"]
    wide, high = WIDTH - MARGIN - 14, HEIGHT - MARGIN
    points = [
        (MARGIN + wide * row["pages"] / pages, 24 + high * (1 - row[panel.name] / most)) for row in curve
    ]  # fmt: skip
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<text x="{MARGIN}" y="14" fill="#333">{panel.title}</text>'
        f'<path d="M{MARGIN} 24V{24 + high}H{MARGIN + wide}" fill="none" stroke="#999"/>'
        f'<polyline points="{line}" fill="none" stroke="#1f5fa8" stroke-width="2"/>'
        f'<text x="{MARGIN - 4}" y="30" text-anchor="end" fill="#666">{most:.3g}</text>'
        f'<text x="{MARGIN - 4}" y="{24 + high}" text-anchor="end" fill="#666">0</text>'
        f'<text x="{MARGIN + wide}" y="{38 + high}" text-anchor="end" fill="#666">{pages:,.0f} pages</text>'
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int) -> str:
    rules = ["---" if column < text_columns else "---:" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rules, *rows))
