"""The house is as ARCHITECTURE.md says: imports go down only, decisions do not wait, listen or look at the clock."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kadcrawl"

FLOORS = ("cli", "peer", "sinks", "crawl", "history", "balance", "overlay", "link", "members", "")
"""From the roof down; the last are the words: keys, urls, config, errors, clock, version."""

DECISIONS = (
    "keys",
    "page_rules",
    "rule_file",
    "urls",
    "config",
    "limits",
    "errors",
    "spacing",
    "swarm_key",
    "balance.drain",
    "balance.identity",
    "balance.leases",
    "balance.lessons",
    "balance.level",
    "balance.losses",
    "balance.portions",
    "balance.powers",
    "balance.predict",
    "balance.shares",
    "balance.shedding",
    "balance.sizing",
    "cli.verdict",
    "crawl.active_sites",
    "crawl.borrowed",
    "crawl.budget",
    "crawl.body",
    "crawl.canonical_link",
    "crawl.charset",
    "crawl.extract",
    "crawl.fetched",
    "crawl.found",
    "crawl.frontier",
    "crawl.idle_clocks",
    "crawl.intake",
    "crawl.page",
    "crawl.path_queries",
    "crawl.patience",
    "crawl.place",
    "crawl.proxies",
    "crawl.recent",
    "crawl.records",
    "crawl.robots",
    "crawl.robots_cache",
    "crawl.scope",
    "crawl.simhash",
    "crawl.site",
    "crawl.sitemap",
    "crawl.totals",
    "crawl.traps",
    "crawl.twins",
    "history.cell_map",
    "history.entry",
    "history.filters",
    "history.holdings",
    "history.placement",
    "history.pybloom_filter",
    "history.rbloom_filter",
    "history.schema",
    "history.seen",
    "history.seen_slice",
    "history.seen_wire",
    "history.slice_parts",
    "history.tally",
    "members.keyring",
    "members.peer_key",
    "members.replay",
    "members.sealing",
    "link.basics",
    "link.cell_messages",
    "link.joining_messages",
    "link.leaf_messages",
    "link.loan_messages",
    "link.codec",
    "link.conduct",
    "link.maps",
    "link.messages",
    "link.speakers",
    "overlay.addresses",
    "overlay.liveness",
    "overlay.lookup",
    "overlay.membership",
    "overlay.ownership",
    "overlay.quiescence",
    "overlay.routing",
    "overlay.settings",
    "overlay.siblings",
    "peer.full_peers",
    "sinks.batch",
    "sinks.names",
    "sinks.parquet",
    "sinks.tables",
)
NOT_FOR_DECISIONS = {"asyncio", "socket", "time", "aiohttp", "threading", "subprocess", "sqlite3"}
CLOCKS = {
    "time.time",
    "time.monotonic",
    "time.perf_counter",
    "random.random",
    "random.choice",
    "random.randrange",
    "random.uniform",
    "random.shuffle",
    "datetime.utcnow",
}
MAY_READ_THE_CLOCK = {"kadcrawl/clock.py", "kadcrawl/cli/view/progress.py", "kadcrawl/cli/run.py"}
"""The first is where time comes from; a person's terminal and profile are of this world."""

MODULES = {
    str(path.relative_to(PACKAGE).with_suffix("")).replace("/", ".").removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def floor(module: str) -> int:
    room = module.removeprefix("kadcrawl").lstrip(".").split(".")[0]
    return FLOORS.index(room if room in FLOORS else "")


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down_only(module: str) -> None:
    if module in ("__init__", "__main__"):
        return  # The front door.
    for imported in imports(MODULES[module]):
        if imported.startswith("kadcrawl"):
            assert floor(imported) >= floor(module), f"{module} is below {imported}"
        assert not re.match(r"sim\b|scripts\b|fuzz\b|tests\b", imported)


@pytest.mark.parametrize("module", DECISIONS)
def test_decisions_neither_wait_nor_listen_nor_look_at_the_clock(module: str) -> None:
    path = MODULES[module]
    assert not {imported.split(".")[0] for imported in imports(path)} & NOT_FOR_DECISIONS
    assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Await | ast.AsyncFor)]


@pytest.mark.parametrize("module", MODULES)
def test_time_and_chance_come_from_outside(module: str) -> None:
    path = MODULES[module]
    if str(path.relative_to(ROOT)) in MAY_READ_THE_CLOCK:
        return
    used = {ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert not used & CLOCKS


@pytest.mark.parametrize("module", MODULES)
def test_files_have_one_idea_and_say_it(module: str) -> None:
    text = MODULES[module].read_text()
    assert ast.get_docstring(ast.parse(text)), "the docstring is the file's theory"
    assert len(text.splitlines()) <= 450
    assert not re.search(r"\bTODO\b|\bFIXME\b|\bXXX\b", text)


@pytest.mark.parametrize("module", MODULES)
def test_no_task_is_without_an_owner(module: str) -> None:
    assert "ensure_future" not in MODULES[module].read_text()


def test_every_make_command_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", makefile, re.M)
    assert targets == re.findall(r"^([a-z-]+):.*## ", makefile, re.M)


def test_the_readme_names_no_command_that_is_not_there() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z-]+)", readme)):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for path in set(re.findall(r"\]\(([A-Za-z./_-]+)\)", readme)):
        assert (ROOT / path).exists(), path
    for module in set(re.findall(r"python -m (scripts\.\w+|sim\.\w+)", readme)):
        assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module


def test_every_test_the_threat_model_names_is_there() -> None:
    """A promise whose test was renamed or removed would be none."""
    named = set(re.findall(r"`([a-z_/]+\.py)::(test_\w+)`", (ROOT / "THREAT-MODEL.md").read_text()))
    assert len(named) > 40
    cells = re.findall(r"^\| [STRIDE] \|.*\|([^|]*)\|$", (ROOT / "THREAT-MODEL.md").read_text(), re.MULTILINE)
    loose = [cell for cell in cells if re.sub(r"`[a-z_/]+\.py::test_\w+`(, )?", "", cell.strip())]
    assert not loose, "each row names its tests whole, or none"
    missing = {
        f"{path}::{name}"
        for path, name in named
        if not re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / path).read_text(), re.MULTILINE)
    }
    assert not missing


def test_a_threat_without_a_test_is_said_to_be_left() -> None:
    rows = re.findall(r"^\| [STRIDE] \|.*\|$", (ROOT / "THREAT-MODEL.md").read_text(), re.MULTILINE)
    assert len(rows) > 60
    assert [] == [row for row in rows if "::test_" not in row and "| **left**" not in row]


def test_it_is_said_how_to_report_and_what_is_promised() -> None:
    said = re.findall(r"^## (.+)$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    assert ["How to report", "What is promised", "Good practice"] == said


@pytest.mark.parametrize("command", ["check", "test", "test-chaos", "demo", "sim", "sim-mutants", "fuzz", "test-newer"])
def test_nothing_lands_without_it(command: str) -> None:
    assert re.search(rf"^(\w+=\d )?make {command}\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)
