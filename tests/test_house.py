"""The house stands as ARCHITECTURE.md draws it: imports go down, decisions neither wait nor look at a clock, tests lie
where their modules do.

`scripts.house` measures; here are the rules that must hold, and the names that the rules need.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from scripts.house.imports import imported_names, module_circles, unknown_rooms, upward
from scripts.house.rooms import FLOORS
from scripts.house.source import PACKAGE, Source, read
from scripts.house.tested import folders_without_theory, untested
from scripts.house.waiting import clocks_read, marks_of_a_conversation

ROOT = Path(__file__).parent.parent

CONVERSATIONS = {
    "cli": "ask exits peer_order run site_names",
    "cli.commands": "control crawl doctor export rekey run_peer vacuum",
    "cli.data_check": "catalog data_repair journal_check",
    "cli.doctor": "checkup directory_probes helper_probes network_probes",
    "cli.local": (
        "child child_main child_process child_task fork_server forked_process local_feed peer_life resting salvage "
        "stores_at_rest supervisor"
    ),
    "cli.seeds": "feeding seed_feeder",
    "cli.view": "hook_check progress saved_page",
    "crawl": "attempt build capacity crawler disk_guard page_processor robots_fetch shared_rules time_count",
    "crawl.clocks": "addresses clock_holder clock_host",
    "crawl.content": "record_extractor",
    "crawl.cookies": "log_in login_hook",
    "crawl.fetch": (
        "address_guard answer direct_request errors fetcher late_resolver memory_slots metered_connection "
        "pinned_address poison_pages proxy_connector request_rules response_watch"
    ),
    "crawl.links": "forwarder",
    "crawl.output": "page_stream warc_indexer",
    "crawl.proxies": "fetcher health_checks",
    "crawl.reach": "lone_fetcher network_proof relay_client relay_host relayed_fetcher self_test",
    "crawl.recrawl": "expiry scheduler",
    "leaf": "late_reports leaf leaf_access leaf_crawl leaf_owners work_requests",
    "lending": (
        "balancer block_divider blocks borrower drain_policy leaf_host lender level_policy loan_marker loans "
        "throughput_learning"
    ),
    "link": "acceptor admission_control client client_connection http_log process_links server server_connection",
    "link.wire": "census_rows",
    "overlay": "bootstrap lookups overlay pending_requests protocol",
    "overlay.waves": "termination wave",
    "peer": (
        "base build environment handlers offered_links page_reader peer rejoin resources shared_process "
        "shutdown steered_peer"
    ),
    "peer.dashboard": "source swarm_access",
    "peer.membership": (
        "bootstrap bootstrap_dialer bootstrap_names departed endpoints key_refusals key_rotation known_peers lan "
        "newcomers node_id"
    ),
    "peer.monitoring": "listener",
    "peer.tracing": "otel_traces",
    "peer.swarm": "budget_sharing cell_looks census commands fetch_again find_url queue_counter queue_survey "
    "dropping end_check reach_sync retry retrying seed_streams seeds state_gossip steer wave_answers",
    "replication": "absence_check anti_entropy cells epoch_filter_transfer holder_side peer_tasks record_codec "
    "replication_stream replicator",
    "replication.owner": "batched_cell_queries catch_up cell_opener join recheck sync",
    "sinks": "deliveries delivery log_work mongo sink sqlite warc_work",
    "store": "free_pages journal journal_reader lean_commits log_roller migration statement_cache wal",
    "web": "event_stream hub listener",
    "system": (
        "clock cooperative daemon_threads datagram_drain event lean_imports listening mailbox packet_filter "
        "spaced_batches task_set"
    ),
}
"""The modules that wait, listen or read a clock, by package. Every other module is a decision, a new module too."""
TALKING = {f"{package}.{name}" for package, names in CONVERSATIONS.items() for name in names.split()}

MAY_READ_THE_CLOCK = {"system.clock", "cli.view.progress", "cli.run"}
"""The clock's own module, and a person's terminal and profile."""
LINES_MAX = 450
"""The limit of lines in a file. `make house` prints the files that miss the aim of 350."""
THREATS = "\n".join(page.read_text() for page in sorted((ROOT / "docs/explanation").glob("threat-model*.md")))
"""The pages of the threat model: their tables have a row for each threat."""


@cache
def sources() -> list[Source]:
    return read(ROOT, [PACKAGE])


@cache
def modules() -> dict[str, Source]:
    return {source.module.removeprefix(f"{PACKAGE}."): source for source in sources()}


def test_imports_go_down() -> None:
    assert [] == [str(finding) for finding in upward(sources())]


def test_every_room_has_a_floor() -> None:
    assert [] == [str(finding) for finding in unknown_rooms(sources())]


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_floors_are_drawn_as_they_are(document: str) -> None:
    drawing = re.search(r"```text\n(cli\n.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert drawing is not None
    # A wide gap separates a room from the words about it.
    drawn = [tuple(re.split(r" {8,}", line)[0].split()) for line in drawing[1].splitlines()]
    assert list(FLOORS[1:]) == drawn


def test_the_picture_of_the_floors_has_every_room() -> None:
    picture = (ROOT / "docs" / "assets" / "architecture.svg").read_text()
    assert [room for floor in FLOORS[1:] for room in floor] == re.findall(r'class="name">(\w+)<', picture)


def test_architecture_links_to_code_that_is_there() -> None:
    linked = re.findall(r"\]\(([^)#:]+\.py)\)", (ROOT / "ARCHITECTURE.md").read_text())
    assert len(linked) > 40
    assert [] == [path for path in linked if not (ROOT / path).exists()]


def test_there_are_no_circles() -> None:
    assert [] == [str(finding) for finding in module_circles([*sources(), *read(ROOT, ["sim", "scripts", "fuzz"])])]


def test_the_package_imports_no_script_simulator_or_test() -> None:
    imported = [(module, name) for module, source in modules().items() for name, _ in imported_names(source)]
    assert [] == [(module, name) for module, name in imported if re.match(r"(sim|scripts|fuzz|tests)\b", name)]


def test_decisions_neither_wait_nor_listen_nor_look_at_the_clock() -> None:
    talking = {module: marks for module, one in modules().items() if (marks := marks_of_a_conversation(one))}
    loose = {module: marks for module, marks in talking.items() if module not in TALKING}
    assert {} == loose, "take it out, or add the module to CONVERSATIONS"


def test_conversations_are_named_only_if_they_are_there_and_talk() -> None:
    talking = {module for module, source in modules().items() if marks_of_a_conversation(source)}
    assert set() == TALKING - talking


def test_time_and_chance_come_from_outside() -> None:
    read_here = {module: clocks for module, source in modules().items() if (clocks := clocks_read(source))}
    assert {} == {module: clocks for module, clocks in read_here.items() if module not in MAY_READ_THE_CLOCK}
    assert set() == MAY_READ_THE_CLOCK - read_here.keys(), "they are excused only where they are read"


def test_files_have_one_idea_and_say_it() -> None:
    every = modules().items()
    assert [] == [module for module, one in every if not ast.get_docstring(one.tree)], "it is the file's theory"
    assert {} == {module: one.lines for module, one in every if one.lines > LINES_MAX}
    assert [] == [module for module, one in every if re.search(r"\bTODO\b|\bFIXME\b|\bXXX\b", one.text)]


def test_no_task_is_without_an_owner() -> None:
    assert [] == [module for module, source in modules().items() if "ensure_future" in source.text]


def test_every_folder_is_a_package_that_says_its_theory() -> None:
    assert [] == [str(finding) for finding in folders_without_theory(ROOT)]


def test_a_module_has_its_tests_where_it_lies_or_names_them() -> None:
    assert [] == [str(finding) for finding in untested(ROOT, sources())]


def test_every_make_command_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", makefile, re.M)
    assert targets == re.findall(r"^([a-z-]+):.*## ", makefile, re.M)


def test_the_readme_names_no_command_that_is_not_there() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"(?:^|`)make ([a-z-]+)", readme, re.M)):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for path in set(re.findall(r"\]\(([A-Za-z./_-]+)\)", readme)):
        assert (ROOT / path).exists(), path
    for module in set(re.findall(r"python -m (scripts\.\w+|sim\.\w+)", readme)):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def test_every_test_the_threat_model_names_is_there() -> None:
    """A promise whose test was renamed or removed would be none."""
    named = set(re.findall(r"`([a-z_/]+\.py)::(test_\w+)`", THREATS))
    assert len(named) > 40
    cells = re.findall(r"^\| [STRIDE] \|.*\|([^|]*)\|$", THREATS, re.MULTILINE)
    loose = [cell for cell in cells if re.sub(r"`[a-z_/]+\.py::test_\w+`(, )?", "", cell.strip())]
    assert not loose, "each row names its tests whole, or none"
    missing = {
        f"{path}::{name}"
        for path, name in named
        if not re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / path).read_text(), re.MULTILINE)
    }
    assert not missing


def test_a_threat_without_a_test_is_said_to_be_left() -> None:
    rows = re.findall(r"^\| [STRIDE] \|.*\|$", THREATS, re.MULTILINE)
    assert len(rows) > 60
    assert [] == [row for row in rows if "::test_" not in row and "| **left**" not in row]


def test_it_is_said_how_to_report_and_what_is_promised() -> None:
    said = re.findall(r"^## (.+)$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    assert ["How to report", "What is promised", "Good practice"] == said


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "test",
        "test-worlds",
        "test-examples",
        "test-chaos",
        "test-web",
        "demo",
        "sim",
        "sim-mutants",
        "fuzz",
        "test-newer",
        "dist",
    ],
)
def test_nothing_lands_without_it(command: str) -> None:
    assert re.search(rf"^(\w+=\d )?make {command}\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)


@pytest.mark.parametrize("marker", ["worlds", "examples", "chaos"])
def test_each_marked_test_is_run_by_its_command(marker: str) -> None:
    (places,) = re.findall(rf"-m {marker} (tests.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if f"pytest.mark.{marker}" in path.read_text()]
    left_out = [path for path in marked if not any(path.is_relative_to(ROOT / place) for place in places.split())]
    assert marked
    assert [] == left_out
