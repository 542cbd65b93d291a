"""Tables of the benchmarks page, each made of one file in docs/figures.

Tests: tests/docs/test_figures.py
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from scripts.docs.long_figures import bench_long, bench_longest, soak
from sim import sometimes


class KeptFigures(Protocol):
    """The files in docs/figures."""

    def __getitem__(self, name: str) -> Any: ...
    def measured(self, *names: str) -> str: ...
    def cores(self, name: str) -> int: ...


def table(head: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """Return a Markdown table. All columns but the first `text_columns` hold numbers."""
    rules = ["---" if column < text_columns else "---:" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rules, *rows))


def number(value: float | None) -> str:
    """Return a number with three significant digits, and all digits before the point."""
    if value is None:
        return ""
    if value == 0 or (isinstance(value, int) and not isinstance(value, bool)):
        return f"{value:,.0f}"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:#.3g}".rstrip(".")


def bench(kept: KeptFigures) -> str:
    """Return the table of CPU and speed beside other crawlers and the bare loop."""
    figures = kept["bench"]
    head = (
        "",
        "CPU s per 1,000 pages",
        "least to most",
        "without the start",
        "to the bare loop",
        "to it, without the start",
        "to Scrapy",
        "pages/s",
        "peak MB",
        "pages found",
    )
    rows = [
        (
            name,
            f"{cost['cpu_s_per_1000']:.3f}",
            f"{cost['cpu_s_per_1000_least']:.3f} to {cost['cpu_s_per_1000_most']:.3f}",
            f"{cost['steady_s_per_1000']:.3f}",
            f"{cost['cpu_to_bare_loop']:.2f}",
            f"{cost['steady_to_bare_loop']:.2f}",
            f"{cost['cpu_to_scrapy']:.2f}",
            f"{cost['pages_per_s']:,.0f}",
            f"{cost['peak_mb']:.0f}",
            f"{cost['covered']:.0%}",
        )
        for name, cost in figures["crawlers"].items()
    ]
    rows += [(name, f"not available: {why}", *[""] * 8) for name, why in figures["absent"].items()]
    aims = [
        (name, f"{aim['most']:g}", f"{figures['crawlers'][name]['steady_to_bare_loop']:.2f}", _yes(aim["reached"]))
        for name, aim in figures["aims"].items()
    ]
    runs = "One run of each" if figures["runs"] == 1 else f"Medians of {figures['runs']} runs"
    return (
        f"{len(figures['sites'])} documentation sites: {figures['pages']:,} pages, {figures['urls']:,} URLs. "
        f"{runs}.\n\n{table(head, rows)}\n\n"
        f"{table(('CPU to the bare loop, without the start', 'aim: at most', 'now', 'reached'), aims)}\n\n"
        f"{kept.measured('bench')}"
    )


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


def profile(kept: KeptFigures) -> str:
    """Return the cost of one page by room."""
    figures = kept["profile"]
    rows = [(f"`{name}`" if "/" in name else name, f"{us:.0f}") for name, us in figures["rooms"].items() if us >= 1]
    return (
        f"A page costs {figures['us']:.0f} us of CPU: {figures['pages']:,} pages by one peer, and "
        f"{figures['samples']:,} samples. The imports of a peer cost {figures['start_up_s']:.2f} s more.\n\n"
        f"{table(('room', 'us a page'), rows)}\n\n{kept.measured('profile')}"
    )


def members(kept: KeptFigures) -> str:
    """Return the tables on keys, floods and idle connections."""
    figures = kept["bench-members"]
    with_key, without = figures["crawl"]
    crawl = table(
        (f"{with_key['pages']:,} pages by 4 peers", "CPU s", "seconds", "questions on kept connections"),
        [
            (crawl["how"], f"{crawl['cpu_s']:.1f}", f"{crawl['wall_s']:.1f}", f"{crawl['kept']:.1%}")
            for crawl in figures["crawl"]
        ],
    )
    small = table(("step", "us of CPU"), [(what, number(us)) for what, us in figures["cpu_us"].items()])
    floods = table(
        ("100,000 datagrams a second of", "cores used", "pages/s meanwhile"),
        [(flood["of"], f"{flood['cores']:.2f}", f"{flood['pages_per_s']:.0f}") for flood in figures["floods"]],
    )
    idle = table(
        ("a peer with silent connections", "files", "MB", "a member waits, ms"),
        [
            (look["when"], str(look["files"]), number(look["mb"]), number(look["answered_ms"]))
            for look in figures["idle"]
        ],
    )
    ratio = with_key["cpu_s"] / without["cpu_s"]
    return (
        f"A crawl with a key takes {ratio:.2f} times the CPU of a crawl without.\n\n{crawl}\n\n{small}\n\n{floods}\n\n"
        f"{idle}\n\n{kept.measured('bench-members')}"
    )


def overlay(kept: KeptFigures) -> str:
    """Return the table of the overlay beside the plain package."""
    head = (
        "", "N", "join s (median)", "KiB a peer", "right, quiet", "right, just after the kill", "all right again after",
        "look-up ms, quiet (50/95 %)", "look-up ms, after (50/95 %)",
    )  # fmt: skip
    rows = [
        (
            row["kind"], str(row["peers"]), f"{row['join_s']:.2f}", f"{row['kib_per_peer']:.0f}",
            f"{row['quiet_percent']:.1f} %", f"{row['kill_percent_first']:.1f} %",
            "not followed" if row["right_after_s"] is None else f"{row['right_after_s']:.1f} s",
            "{:,.0f} / {:,.0f}".format(*row["quiet_lookup_ms"]), "{:,.0f} / {:,.0f}".format(*row["kill_lookup_ms"]),
        )
        for row in kept["bench-overlay"]
    ]  # fmt: skip
    return f"{table(head, rows)}\n\n{kept.measured('bench-overlay')}"


def native_links(kept: KeptFigures) -> str:
    """Return the table of the link extractor in Python and in native code."""
    figures = kept["bench-links"]
    rows = []
    for name, cost in (("all pages", figures["every"]), ("pages of up to 128 KiB", figures["ordinary"])):
        for step, times in (("the walk over the markup", cost["walk_us"]), ("all links", cost["links_us"])):
            what = f"{name} ({cost['pages']:,} of {cost['kilobytes']:.0f} kB): {step}"
            python, native = times["Python"], times["native"]
            rows.append((what, number(python), number(native), number(python / native)))
    head = ("", "us in Python", "us natively", "times less")
    return f"{table(head, rows)}\n\n{kept.measured('bench-links')}"


def page_counts(kept: KeptFigures) -> str:
    """Return the counts of one page."""
    swarms: Mapping[str, Mapping[str, float]] = kept["page-counts"]["swarms"]
    names = list(dict.fromkeys(name for counts in swarms.values() for name in counts))
    rows = [[name, *(f"{counts.get(name, 0.0):,.2f}" for counts in swarms.values())] for name in names]
    return f"{table(['of a page', *swarms], rows)}\n\n{kept.measured('page-counts')}"


def seen(kept: KeptFigures) -> str:
    """Return the table of expiring fingerprints beside Scrapy's set."""
    most = max(cost["keys"] for cost in kept["bench-seen"])
    costs = [cost for cost in kept["bench-seen"] if cost["keys"] == most]
    scrapy = costs[0]
    rows = [
        (
            cost["name"] + (", growing" if cost["grown"] else ""),
            str(cost["epoch_filters"] or ""),
            f"{cost['bytes_per_key']:.2f}",
            number(cost["bytes_per_key"] / scrapy["bytes_per_key"]),
            f"{number(cost['new_us'])} / {number(cost['known_us'])}",
            number(cost["add_us"]),
            number(cost["wrong"]) if cost["epoch_filters"] else "0",
        )
        for cost in costs
    ]
    head = ("", "live filters", "bytes a URL", "to Scrapy", "us a check, new / known", "us an add", "wrong")
    return f"{most:,} URLs.\n\n{table(head, rows)}\n\n{kept.measured('bench-seen')}"


def frontier(kept: KeptFigures) -> str:
    """Return the table of what a URL costs while many wait."""
    head = ("URLs that wait", "us to accept", "us for a known URL", "us to read and finish", "bytes of disk a URL")
    rows = [
        (
            f"{cost['pending']:,}",
            number(cost["accept_us"]),
            number(cost["known_us"]),
            number(cost["finish_us"]),
            f"{cost['bytes_per_url']:.0f}",
        )
        for cost in kept["bench-frontier"]
    ]
    parts = (
        ("the SQL statements by themselves", "accept_sql_us", "finish_sql_us"),
        ("with commits and checkpoints", "accept_commit_us", "finish_commit_us"),
        ("through the store, with digests and syncs", "accept_us", "finish_no_line_us"),
        ("with the line of the page", "", "finish_line_us"),
        ("with the read of the URL", "", "finish_us"),
    )
    heads = [f"{what}, {cost['pending']:,} wait" for cost in kept["bench-frontier"] for what in ("accept", "finish")]
    shares = [
        (name, *(number(cost[field]) if field else "" for cost in kept["bench-frontier"] for field in fields))
        for name, *fields in parts
    ]
    costs, by_part = table(head, rows), table(("CPU us of a URL", *heads), shares)
    return f"{costs}\n\n{by_part}\n\n{kept.measured('bench-frontier')}"


def history(kept: KeptFigures) -> str:
    """Return the table of the history's cost by mode."""
    head = ("", "us to accept", "us to finish", "us a look, new", "us a look, known", "bytes of disk a URL", "wrong")
    rows = [
        (
            cost["history"],
            *(number(cost[name]) for name in ("accept_us", "finish_us", "new_us", "known_us", "disk_bytes")),
            str(cost["wrong"]),
        )
        for cost in kept["bench-history"]
    ]
    return f"{kept['bench-history'][0]['keys']:,} URLs.\n\n{table(head, rows)}\n\n{kept.measured('bench-history')}"


def restart(kept: KeptFigures) -> str:
    """Return the table of a restart with many known URLs."""
    figures = kept["bench-restart"]
    head = ("", "cells", "answers after", "first cell open after", "all cells open after", "CPU s by then")
    rows = [
        (
            {"alone": "alone", "joins": "joins another peer", "restarts": "restarts beside that peer"}[name],
            f"{one['cells']:,}",
            *(f"{one[moment]['wall_s']:.2f} s" for moment in ("answers", "first_open", "all_open")),
            f"{one['all_open']['cpu_s']:.1f}",
        )
        for name, one in figures["restarts"].items()
    ]
    return f"A peer with {figures['urls']:,} known URLs.\n\n{table(head, rows)}\n\n{kept.measured('bench-restart')}"


def dashboard(kept: KeptFigures) -> str:
    """Return the table of what a dashboard costs its peer."""
    figures = kept["bench-web"]
    head = ("", "part of a core")
    rows = [
        ("an idle peer without a dashboard", f"{figures['idle_share_without']:.2%}"),
        ("an idle peer with a dashboard that nobody looks at", f"{figures['idle_share']:.2%}"),
        (f"a peer in a crawl by {figures['peers']} peers, nobody looks", f"{figures['share']:.2%}"),
        (f"the same peer with {figures['viewers']} viewers", f"{figures['share_viewed']:.2%}"),
    ]
    shown = page_frames(figures.get("frames", ()))
    return (
        f"{table(head, rows)}\n\nEach viewer gets {figures['events_per_s']:.1f} events and "
        f"{figures['kb_per_s']:.1f} kB a second.\n\n{shown}{kept.measured('bench-web')}"
    )


def page_frames(figures: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of what a change of a swarm costs the page, or nothing if no browser was there."""
    head = (
        "simulated peers",
        "scripts",
        "layout and styles",
        "both, at most",
        "layouts, at most",
        "changed nodes, at most",
    )
    rows = [
        (
            f"{one['peers']:,}",
            *(f"{one[name]:.1f} ms" for name in ("script_ms", "layout_ms", "most_ms")),
            f"{one['layouts']:,}",
            f"{one['touched']:,}",
        )
        for one in figures
    ]
    if not rows:
        return ""
    return f"To show one change of a swarm, the page takes in Chromium:\n\n{table(head, rows)}\n\n"


def seeds(kept: KeptFigures) -> str:
    """Return the table of seeds from a pipe."""
    figures = kept["seeds"]
    head = ("", "memory", "CPU s per 1,000 seeds")
    thousands = figures["seeds"] / 1000
    rows = [
        (
            "`kadcrawl add -`, at a tenth and at the end",
            f"{figures['command_mb_at_a_tenth']:.0f} and {figures['command_mb']:.0f} MB",
            f"{figures['command_cpu_s'] / thousands:.3f}",
        ),
        *(
            (f"peer {place}, at most", f"{peak_mb:.0f} MB", f"{cpu_s / thousands:.2f}")
            for place, (peak_mb, cpu_s) in enumerate(zip(figures["peer_mb"], figures["peer_cpu_s"], strict=True), 1)
        ),
    ]
    return (
        f"{figures['seeds']:,} seeds of as many hosts, from a pipe into {figures['peers']} peers. Each is kept three "
        f"times: {figures['wall_s']:,.0f} s, {figures['seeds_per_s']:,.0f} seeds/s, "
        f"{figures['directory_mb']:,.0f} MB of files. The command read {figures['lines']:,} lines. "
        f"{figures['duplicates']:,} lines named a seed again. The owners have {figures['accepted']:,} URLs.\n\n"
        f"{table(head, rows)}\n\n{kept.measured('seeds')}"
    )


def five_peers(kept: KeptFigures) -> str:
    """Return the table of five unequal peers."""
    figures = kept["five-peers"]
    names = {
        "equal": "equal shares",
        "shedding": "`--balance drain`",
        "predictive": "`--balance predictive`",
        "swarm": "with `--solver pso`",
    }
    rows = [
        (names[name], f"{crawl['makespan_s']:.1f}", f"{crawl['over_bound']:.2f}", str(crawl["missed"]))
        for name, crawl in figures["crawls"].items()
    ]
    return (
        f"{figures['pages']:,} pages. The optimum is {figures['bound_s']:.1f} s.\n\n"
        f"{table(('', 'seconds', 'to the optimum', 'pages missed'), rows)}\n\n{kept.measured('five-peers')}"
    )


def overload(kept: KeptFigures) -> str:
    """Return the table of ten peers of one process by host and by URL, also stopped."""
    figures = kept["bench-overload"]
    by_host = {one["freeze_s"]: one for one in figures["cases"] if one["partition"] == "host"}
    rows = [
        (
            f"by {'URL' if one['partition'] == 'url' else one['partition']}"
            + (f", stopped for {one['freeze_s']:.0f} s" if one["freeze_s"] else ""),
            f"{one['wall_s']:.0f}",
            f"{1000 * one['cpu_s'] / one['pages']:.1f}",
            f"{one['cpu_s'] / by_host[one['freeze_s']]['cpu_s']:.2f}",
            f"{one['fetched']:,}",
            str(one["twice"]),
            str(one["evictions"]),
            f"{one['longest_stall_s']:.1f}",
        )
        for one in figures["cases"]
    ]
    head = (
        "",
        "seconds",
        "CPU ms a page",
        "CPU to that by host",
        "pages fetched",
        "twice",
        "peers taken for dead",
        "longest stall, s",
    )
    said = f"{figures['peers']} peers, {figures['hosts']} hosts, {figures['pages']:,} pages."
    return f"{said}\n\n{table(head, rows)}\n\n{kept.measured('bench-overload')}"


def swarm_memory(kept: KeptFigures) -> str:
    """Return the table of the bytes of a URL in a swarm, beside one filter."""
    rows = [
        (
            f"{one['urls_a_day']:,}",
            number(one["keys_a_cell"]),
            f"{one['one_filter']:.1f}",
            f"{one['peer']:.1f}",
            f"{one['swarm']:.1f}",
            f"{one['peer_disk']:.1f}",
        )
        for one in kept["swarm-memory"]
    ]
    head = ("URLs of a day", "of a cell", "one filter", "one peer", "the swarm, three copies", "disk of one peer")
    return f"{table(head, rows)}\n\n{kept.measured('swarm-memory')}"


def node_usage(kept: KeptFigures) -> str:
    """Return P1, Table 3, theirs and ours."""
    figures = kept["node-usage"]
    rows = [
        (
            str(place),
            *(f"{used:g} ({alone:g})" for used, alone in theirs),
            f"{node['pages_s']:.1f}",
            f"{node['cpu_percent']:.1f} ({node['idle_cpu_percent']:.1f})",
            f"{node['memory_mb']:.0f}, {node['memory_percent']:.1f} %",
            f"{node['page_kb_s']:.0f}",
        )
        for place, (node, theirs) in enumerate(zip(figures["nodes"], figures["paper"], strict=True), 1)
    ]
    head = ("node", "paper: % CPU", "% memory", "% bandwidth", "ours: pages/s", "% of a core", "MB, % memory", "kB/s")
    without, with_ = figures["without"], figures["with"]
    return (
        f"{table(head, rows)}\n\nThe whole machine, other work included: {without['cpu_percent']:.0f} % of its "
        f"processors and {without['memory_percent']:.0f} % of its memory before, {with_['cpu_percent']:.0f} % and "
        f"{with_['memory_percent']:.0f} % with the eight peers and their web. Over loopback went "
        f"{with_['loopback_kb_s']:.0f} kB a second, pages and messages.\n\n{kept.measured('node-usage')}"
    )


def many_peers(kept: KeptFigures) -> str:
    """Return the table of what a peer costs on one machine, by the way it runs."""
    names = {
        "processes": "`crawl --peers`",
        "in-process": "`crawl --in-process`",
        "inside": "in your program, by sockets",
        "simulated": "simulated",
    }
    rows = [
        (
            names[cost["way"]],
            str(cost["peers"]),
            f"{cost['mb_a_peer']:.1f}",
            f"{cost['cpu_s_a_peer']:.2f}",
            f"{cost['wall_s']:.0f}",
            f"{cost['files_a_peer']:.0f}" if cost.get("files_a_peer") else "",
        )
        for cost in kept["many-peers"]
    ]
    head = ("", "peers", "MB a peer", "CPU s a peer", "seconds in all", "open files a peer")
    return f"{table(head, rows)}\n\n{kept.measured('many-peers')}"


def papers(kept: KeptFigures) -> str:
    """Return the findings of the papers' experiments."""
    return f"{findings_table(kept['papers'])}\n\n{kept.measured('papers')}"


def papers_full(kept: KeptFigures) -> str:
    """Return the findings of those experiments that were run at their full length as well."""
    return f"{findings_table(kept['papers-full'])}\n\n{kept.measured('papers-full')}"


def findings_table(results: Mapping[str, Any]) -> str:
    """Return the table of the findings of some experiments."""
    head = ("experiment", "finding", "paper", "kadcrawl", "bound", "aim reached")
    rows = [
        (
            f"{result['paper']}" if not place else "",
            finding["what"].replace("|", "/"),
            number(finding["theirs"]),
            f"{number(finding['ours'])}{' *fitted*' if result['fitted'] else ''}",
            number(finding["bound"]),
            {None: "", True: "yes", False: "no"}[finding["reached"]],
        )
        for result in results.values()
        for place, finding in enumerate(result["findings"])
    ]
    return table(head, rows, text_columns=2)


def balancing_256(kept: KeptFigures) -> str:
    """Return the comparison of the policies of load balance with 256 peers."""
    (compared,) = kept["balancing-256"]["balancing-256"]["tables"]
    cells = [[str(cell) if isinstance(cell, str) else number(cell) for cell in row] for row in compared["rows"]]
    return f"{compared['title']}:\n\n{table(compared['heading'], cells)}\n\n{kept.measured('balancing-256')}"


def campaign_table(report: Mapping[str, Any]) -> str:
    """Return the counts of a campaign as a table."""
    repair = report["repair_seconds"]
    worst = f" (of the worst of {report['blocks']} blocks)" if report.get("blocks", 1) > 1 else ""
    rows: list[tuple[str, str]] = [
        ("seeds, virtual hours", f"{report['seeds']:,}, {report['virtual_hours']:,.1f}"),
        ("kills, partitions", f"{report['kills']:,}, {report['partitions']:,}"),
        ("URLs", f"{report['urls']:,}"),
        ("URLs lost", str(report["lost"])),
        ("fetched twice", f"{report['duplicates']:,} ({report['duplicate_ratio']:.2%})"),
        ("requests that died with their peer", f"{report['cut_short']:,}"),
        (
            "violations of politeness, robots.txt",
            f"{report['politeness_violations']}, {report['robots_violations']}",
        ),
        (
            "early ends, missing ends, disagreements on an owner",
            f"{report['false_terminations']}, {report['missed_terminations']}, {report['owner_disagreements']}",
        ),
        (f"violations, by {len(report['violations'])} judges", str(sum(report["violations"].values()))),
        ("seconds until three copies again, p50, p99", f"{number(repair['p50'])}, {number(repair['p99'])}{worst}"),
    ]
    return table(("", "count"), rows)


def campaign(kept: KeptFigures) -> str:
    """Return the counts of the campaign, with the awkward moments that it met."""
    report = kept["campaign"]
    met = table(
        ("awkward moment", "met"),
        [(sometimes.AWKWARD[name], f"{count:,}") for name, count in report["sometimes"].items()],
    )
    return f"{campaign_table(report)}\n\n{met}\n\n{kept.measured('campaign')}"


def bloom_campaign(kept: KeptFigures) -> str:
    """Return the counts of the campaign with a bounded history."""
    return f"{campaign_table(kept['bloom-campaign'])}\n\n{kept.measured('bloom-campaign')}"


def mutants(kept: KeptFigures) -> str:
    """Return which planted bug was found after how many seeds."""
    figures = kept["mutants"]
    found = [catch for catch in figures["mutants"] if catch["seed"] is not None]
    slowest = sorted(found, key=lambda catch: -catch["tried"])
    rows = [(f"`{catch['mutant']}`", ", ".join(catch["judges"]), str(catch["tried"])) for catch in slowest]
    return (
        f"{len(found)} of {len(figures['mutants'])} planted bugs are found within {figures['seeds']} seeds of "
        f"{figures['peers']} peers.\n\n{table(('bug', 'found by', 'seeds it took'), rows, text_columns=2)}\n\n"
        f"{kept.measured('mutants')}"
    )


def sim_big(kept: KeptFigures) -> str:
    """Return the figures of the large simulated swarm."""
    figures = kept["sim-big"]
    cost = figures["cost"]
    return (
        f"{figures['peers']:,} peers crawl {figures['urls']:,} URLs in {figures['virtual_s']:.0f} virtual seconds: "
        f"{'nothing lost, no promise broken' if figures['clean'] else 'a promise was broken'}, "
        f"{figures['duplicates']} fetched twice. It takes {cost['cpu_s']:,.0f} s of one core and "
        f"{cost['memory_bytes'] / 1e9:.2f} GB of memory, {cost['memory_bytes'] / 1e6 / figures['peers']:.2f} MB a peer."
        f"\n\n{kept.measured('sim-big')}"
    )


def moves(kept: KeptFigures) -> str:
    """Return what joins and leaves examine and move, for one event."""
    head = (
        "", "peers", "records", "placements stored", "cells moved", "examined per moved",
        "examined per moved, by watchers", "records moved", "wrong",
    )  # fmt: skip
    rows = [
        (
            row["event"], f"{row['peers']:,}", f"{row['records']:,}", f"{row['cells_stored'] / row['events']:,.0f}",
            number(row["cells_moved"] / row["events"]), _ratio(row["looks_held"], row["moved_held"]),
            _ratio(row["looks_watched"], row["moved_watched"]), f"{row['records_moved'] / row['events']:,.0f}",
            str(row["wrong"]),
        )
        for row in kept["bench-moves"]["cells"]
    ]  # fmt: skip
    events = kept["bench-moves"]["cells"][0]["events"]
    return f"Means of {events} events each.\n\n{table(head, rows)}\n\n{kept.measured('bench-moves')}"


def _ratio(examined: int, moved: int) -> str:
    return f"{examined / moved:.2f}" if moved else ""


def chaos(kept: KeptFigures) -> str:
    """Return the outcomes of real peers that are killed, stopped and restarted."""
    return f"{_chaos_table(kept['chaos'])}\n\n{kept.measured('chaos')}"


def chaos_network(kept: KeptFigures) -> str:
    """Return the outcomes of real peers behind bad networks."""
    return f"{_chaos_table(kept['chaos-network'])}\n\n{kept.measured('chaos-network')}"


def _chaos_table(outcomes: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for name in dict.fromkeys(outcome["scenario"] for outcome in outcomes):
        runs = [outcome for outcome in outcomes if outcome["scenario"] == name]
        sums = (f"{sum(run[field] for run in runs):,}" for field in ("pages", "lost", "duplicates", "hurried"))
        rows.append((name, str(len(runs)), *sums))
    return table(("scenario", "runs", "pages", "lost", "fetched again", "sites asked too soon"), rows)


BLOCKS: Final[dict[str, Callable[[KeptFigures], str]]] = {
    "bench": bench,
    "profile": profile,
    "bench-members": members,
    "bench-overlay": overlay,
    "bench-moves": moves,
    "bench-links": native_links,
    "page-counts": page_counts,
    "bench-seen": seen,
    "bench-frontier": frontier,
    "bench-history": history,
    "bench-restart": restart,
    "bench-web": dashboard,
    "bench-long": bench_long,
    "bench-long-million": bench_longest,
    "soak": soak,
    "seeds": seeds,
    "five-peers": five_peers,
    "bench-overload": overload,
    "papers": papers,
    "balancing-256": balancing_256,
    "papers-full": papers_full,
    "many-peers": many_peers,
    "node-usage": node_usage,
    "swarm-memory": swarm_memory,
    "campaign": campaign,
    "bloom-campaign": bloom_campaign,
    "mutants": mutants,
    "sim-big": sim_big,
    "chaos": chaos,
    "chaos-network": chaos_network,
}
