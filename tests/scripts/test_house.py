"""The measures of the house, on tiny trees: each rule meets an example that keeps it and another that breaks it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.house.__main__ import main
from scripts.house.imports import Import, folder_circles, imports, module_circles, unknown_rooms, upward
from scripts.house.outside import assigned_from_outside
from scripts.house.prose import departing_sentences, prose
from scripts.house.rooms import FLOORS, SIDEWAYS, may_import
from scripts.house.sentences import departures, first_sentence
from scripts.house.shape import (
    file_sizes,
    folder_sizes,
    function_sizes,
    long_test_names,
    parameter_counts,
    repeated_classes,
    repeated_test_helpers,
)
from scripts.house.source import Source, read, room_of
from scripts.house.tested import files_that_test, folders_without_theory, untested
from scripts.house.waiting import clocks_read, marks_of_a_conversation


def write(root: Path, files: Mapping[str, str]) -> list[Source]:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return read(root)


def one(root: Path, text: str, path: str = "kadcrawl/urls.py") -> Source:
    return write(root, {path: text})[0]


def test_a_circle_is_found_through_type_only_and_function_imports(tmp_path: Path) -> None:
    under_type_checking = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kadcrawl.keys import Key\n"
    in_a_function = "def f():\n    from kadcrawl import urls\n"
    files = {"kadcrawl/urls.py": under_type_checking, "kadcrawl/keys.py": in_a_function, "kadcrawl/errors.py": ""}
    [circle] = module_circles(write(tmp_path, files))
    assert ("kadcrawl/keys.py", 2, 2) == (circle.file, circle.line, circle.size)
    assert [] == module_circles(write(tmp_path, {"kadcrawl/keys.py": "import kadcrawl.errors\n"}))


def test_two_circles_are_two(tmp_path: Path) -> None:
    files = {f"sim/{name}.py": f"import sim.{other}\n" for name, other in ("ab", "bc", "ca", "de", "ed", "fa")}
    assert [3, 2] == [circle.size for circle in module_circles(write(tmp_path, files))]


def test_a_circle_of_folders_needs_no_circle_of_modules(tmp_path: Path) -> None:
    files = {
        "kadcrawl/crawl/a.py": "import kadcrawl.crawl.scope.b",
        "kadcrawl/crawl/scope/b.py": "",
        "kadcrawl/crawl/scope/c.py": "import kadcrawl.crawl.d",
        "kadcrawl/crawl/d.py": "",
    }
    sources = write(tmp_path, files)
    assert [] == module_circles(sources)
    assert [2] == [circle.size for circle in folder_circles(sources)]
    assert [] == folder_circles(write(tmp_path, {"kadcrawl/crawl/scope/c.py": ""}))


def test_imports_are_resolved_to_files(tmp_path: Path) -> None:
    files = {
        "kadcrawl/link/__init__.py": "from .wire.codec import pack\n",
        "kadcrawl/link/wire/__init__.py": "",
        "kadcrawl/link/wire/codec.py": "import os\nfrom . import basics\nfrom ..server import Server\n",
        "kadcrawl/link/wire/basics.py": "",
        "kadcrawl/link/server.py": "from kadcrawl.link import wire, Client\n",
    }
    expected = [
        Import("kadcrawl/link/__init__.py", "kadcrawl/link/wire/codec.py", 1),
        Import("kadcrawl/link/server.py", "kadcrawl/link/wire/__init__.py", 1),
        Import("kadcrawl/link/server.py", "kadcrawl/link/__init__.py", 1),
        Import("kadcrawl/link/wire/codec.py", "kadcrawl/link/wire/basics.py", 2),
        Import("kadcrawl/link/wire/codec.py", "kadcrawl/link/server.py", 3),
    ]
    assert expected == imports(write(tmp_path, files))


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("cli", "peer", True),
        ("peer", "cli", False),
        ("crawl", "store", True),
        ("store", "replication", False),
        ("replication", "crawl", True),
        ("crawl", "replication", False),
        ("leaf", "peer", True),
        ("peer", "leaf", False),
        ("overlay", "link", True),
        ("link", "overlay", False),
        ("overlay", "store", False),
        ("lending", "sinks", False),
        ("lending", "lending", True),
        ("history", "history", True),
        ("history", "keys", False),
        ("cli", "history", False),
        ("kadcrawl/__init__.py", "kadcrawl/cli/app.py", True),
        ("kadcrawl/cli/app.py", "kadcrawl/__init__.py", False),
        ("kadcrawl/urls.py", "kadcrawl/settings/config.py", False),
    ],
)
def test_rooms_import_lower_rooms_only(importer: str, imported: str, allowed: bool) -> None:
    assert allowed == may_import(importer, imported)


def test_arrows_between_rooms_side_by_side_go_one_way() -> None:
    assert not {(below, above) for above, below in SIDEWAYS} & SIDEWAYS
    floor = {room: rooms for rooms in FLOORS for room in rooms}
    assert [] == [arrow for arrow in SIDEWAYS if floor[arrow[0]] is not floor[arrow[1]]]


def test_an_upward_import_is_found(tmp_path: Path) -> None:
    files = {
        "kadcrawl/keys.py": "\nfrom kadcrawl.crawl.scope import Scope\n",
        "kadcrawl/crawl/scope.py": "from kadcrawl.urls import host\nimport kadcrawl.attic.dust\n",
        "kadcrawl/urls.py": "",
        "kadcrawl/attic/dust.py": "",
    }
    sources = write(tmp_path, files)
    assert ["kadcrawl/keys.py:2: keys imports kadcrawl/crawl/scope.py"] == [str(found) for found in upward(sources)]
    assert ["kadcrawl/attic/dust.py"] == [found.file for found in unknown_rooms(sources)]


@pytest.mark.parametrize(
    "body",
    [
        "rounds.on_due = self.wake",
        "self.rounds.on_due = self.wake",
        "self.totals.pages += 1",
        "del rounds.on_due",
        "setattr(rounds, 'on_due', None)",
        "rounds.a, self.b = 1, 2",
        "rounds.on_due: int = 2",
        "found = lookup()\n        found.at = 1",
        "found = self.Nothing\n        found.at = 1",
        "def inner():\n            rounds.on_due = 1",
        "GLOBAL.level = 1",
    ],
)
def test_an_assignment_from_outside_is_found(tmp_path: Path, body: str) -> None:
    text = f"GLOBAL = Config()\nclass A:\n    def f(self, rounds):\n        {body}\n"
    assert 1 == len(assigned_from_outside([one(tmp_path, text)]))


@pytest.mark.parametrize(
    "body",
    [
        "self.rounds = rounds",
        "self.a, self.b = 1, 2",
        "rounds.table['a'] = 1",
        "made = Rounds()\n        made.on_due = 1",
        "made = await Rounds.start()\n        made.on_due = 1",
        "made = cls(1)\n        made.on_due = 1",
        "made = type(self)(1)\n        made.on_due = 1",
        "made = dataclasses.replace(rounds)\n        made.on_due = 1",
        "made, other = Rounds(), 1\n        made.on_due = 1",
        "with rooms.Rounds() as made:\n            made.on_due = 1",
        "if made := Rounds():\n            made.on_due = 1",
        "def inner():\n            self.a = 1",
        "made = Rounds()\n        def inner():\n            made.a = 1",
        "def inner(): ...\n        inner.reads = True",
        "object.__setattr__(self, 'a', 1)",
    ],
)
def test_an_assignment_from_inside_is_none(tmp_path: Path, body: str) -> None:
    text = f"class A:\n    async def f(self, rounds):\n        {body}\n"
    assert [] == assigned_from_outside([one(tmp_path, text)])


def test_a_static_method_has_no_self(tmp_path: Path) -> None:
    text = "class A:\n    @staticmethod\n    def f(row):\n        row.a = 1\n"
    assert ["f: row.a"] == [found.text for found in assigned_from_outside([one(tmp_path, text)])]


def test_files_are_counted_by_folder_and_lines_by_file(tmp_path: Path) -> None:
    files = {"kadcrawl/urls.py": "\n" * 3, "kadcrawl/keys.py": "\n", "kadcrawl/link/wire/messages.py": "\n" * 9}
    sources = write(tmp_path, files)
    assert [("kadcrawl/", 2), ("kadcrawl/link/wire/", 1)] == [(f.file, f.size) for f in folder_sizes(sources)]
    assert [("kadcrawl/urls.py", 3), ("kadcrawl/keys.py", 1)] == [(f.file, f.size) for f in file_sizes(sources)]


def test_functions_are_measured_at_any_depth(tmp_path: Path) -> None:
    text = "class A:\n    @property\n    def f(self):\n        '''Doc.'''\n        def g(): ...\n        return g\n"
    found = function_sizes([one(tmp_path, text)])
    assert [("A.f: 4 lines", 3), ("A.f.g: 1 lines", 5)] == [(finding.text, finding.line) for finding in found]


def test_self_is_no_parameter_and_others_are(tmp_path: Path) -> None:
    text = "class A:\n    def f(self, a, /, b, *c, d=1, **e): ...\ndef g(): ...\n"
    assert [5, 0] == [finding.size for finding in parameter_counts([one(tmp_path, text)])]


def test_a_class_name_used_twice_is_found(tmp_path: Path) -> None:
    sources = write(tmp_path, {"kadcrawl/urls.py": "class A: ...\nclass B: ...\n", "sim/a.py": "\nclass A: ...\n"})
    [found] = repeated_classes(sources)
    assert "A is defined 2 times: kadcrawl/urls.py:1, sim/a.py:2" == found.text


def test_a_helper_defined_in_two_files_of_tests_is_found(tmp_path: Path) -> None:
    text = "def contact(): ...\ndef test_a(): ...\nclass TestA:\n    def inside(): ...\n"
    sources = write(tmp_path, {"tests/a/test_a.py": text, "tests/support/links/contacts.py": text, "sim/a.py": text})
    assert [] == repeated_test_helpers(sources)
    [found] = repeated_test_helpers(write(tmp_path, {"tests/b/test_a.py": text}))
    assert found.text.startswith("contact is defined 2 times: tests/a/test_a.py:1")


def test_a_test_name_of_71_characters_is_found(tmp_path: Path) -> None:
    names = ["test_".ljust(length, "a") for length in (70, 71)]
    found = long_test_names([one(tmp_path, "".join(f"def {name}(): ...\n" for name in names), "tests/test_a.py")])
    assert [71] == [finding.size for finding in found]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Return the level.", "Return the level"),
        ("Return the\n  level. More.", "Return the level"),
        ("Levels\n\nMore. And more.", "Levels"),
        ("Names, e.g. `a.b`, of version 1.2. More.", "Names, e.g. `a.b`, of version 1.2"),
        ("Levels (of peers.) More.", "Levels (of peers"),
    ],
)
def test_the_first_sentence_ends_at_its_stop(text: str, first: str) -> None:
    assert first == first_sentence(text)


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        # Sentences that this project once had; no regular expression finds the metaphor of "A word costs two minutes".
        ("pronoun", "All peers come to one course, whoever a wave has missed"),
        ("pronoun", "URLs whose answers kill whoever reads them: a peer dies of one twice at most"),
        ("vague", "The places for large things that one page has"),
        ("opening vague", "How much each peer has had done here by saying that it has something of cells"),
        ("opening pronoun", "Until it is free for them: the rest of what it has begun or borrowed"),
        ("semicolon pronoun", "no peer says by what the swarm goes just now; heartbeats will"),
        ("semicolon", "N URLs are left that only dead peers knew; the same command goes on"),
        ("opening", "Failures too: a new directory begins anew"),
        ("vague", "Do one thing with each damaged journal, not all"),
        # Each other opening and pronoun.
        ("opening pronoun", "Who is let in."),
        ("opening", "Whether the peer lives."),
        ("opening", "Where the peer listens."),
        ("opening pronoun", "One that has it."),
        ("opening", "It is closed."),
        ("opening", "Its address."),
        ("opening", "That is closed."),
        ("opening", "Those in time."),
        ("opening", "Of the last datagram."),
        ("opening", "In a row, of a peer that is still there."),
        ("opening", "Called after a cell was opened."),
        ("pronoun", "Return what is known."),
        ("pronoun", "Return the peer of whom a call came."),
        ("pronoun", "Return the list of which this is a part."),
        ("pronoun", "Tell who fetches."),
        ("pronoun", "Take a place if the page has one."),
        ("pronoun", "Take the one that is nearest."),
        ("pronoun", "The large ones are counted."),
        ("pronoun", "Count levels: what a peer has."),
        ("long", " ".join(["word"] * 21) + "."),
        ("long", "Head: " + " ".join(["word"] * 21) + "."),
    ],
)
def test_a_sentence_that_departs_is_found(rules: str, text: str) -> None:
    assert rules.split() == departures(text)


@pytest.mark.parametrize(
    "text",
    [
        # What they became.
        "Anti-entropy for the swarm's state (paused, seeds): heartbeats carry a fingerprint; "
        "a peer that sees another one asks for the state.",
        "Detects pages that crash the process, and blocks them after two crashes.",
        "Limits how many large bodies are in memory: "
        "a page takes a slot when it allocates one and frees it after parsing.",
        "Rate limit per peer on syncs triggered by its `CellsHeld` messages.",
        "Seconds before the peer can start these URLs (work in progress, borrowed work, start-up).",
        "`state.sync_deferred reason=no_answer`",
        "N URLs known only to crashed peers were not fetched. Run the same command to continue.",
        "An unverified claim can delay a cell by at most two minutes.",
        "fuzz: Run one recovery action per corrupted journal",
        # The nearest neighbors of what departs.
        "Return the level.",
        "Return whether the peer lives.",
        "Return the page. What follows is another sentence; it may be as long as it wants to be, and ask who asks.",
        "Peers who lend.",
        "One peer on one machine.",
        "One of the peers of a swarm.",
        "False positives: one in 10,000.",
        "This module reads files.",
        "After a crash, the peer reads its journal.",
        'Take `what` of "who; one".',
        " ".join(["word"] * 20) + ".",
        " ".join(["word"] * 20) + ": " + " ".join(["word"] * 20) + ".",
        "Take `a b c d e f g h i j k l m n o p q r s t u v` for a word.",
    ],
)
def test_a_plain_sentence_passes(text: str) -> None:
    assert [] == departures(text)


def test_prose_is_read_from_docstrings_attributes_and_help(tmp_path: Path) -> None:
    text = '''"""Module."""
LIMIT = 3
"""Limit."""
class A:
    """Class."""
    size: int
    """Size."""
    async def f(self):
        """Method."""
        "".join("no prose")
@click.option("--a", help="Option "
    f"{LIMIT}.")
@click.command("b", short_help="Command.")
def g(): print("no prose", help="No option.")
'''
    expected = ["Module.", "Limit.", "Class.", "Size.", "Method.", "Option x.", "Command."]
    found = prose(one(tmp_path, text))
    assert expected == [text for _, text in found]
    assert [1, 3, 5, 7, 9] == [line for line, _ in found][:5]


def test_a_departing_sentence_is_found_with_its_rules_and_place(tmp_path: Path) -> None:
    source = one(tmp_path, '"""Levels."""\nLIMIT = 3\n"""What is allowed;\nelse more."""\n')
    expected = ["kadcrawl/urls.py:3: [semicolon, opening, pronoun] What is allowed; else more"]
    assert expected == [str(finding) for finding in departing_sentences([source])]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("import asyncio", {"asyncio"}),
        ("from socket import socket", {"socket"}),
        ("async def f(): await g()", {"await"}),
        ("async def f():\n    async with g(): ...", {"await"}),
        ("async def f():\n    async for x in g(): ...", {"await"}),
        ("import bisect\ndef f(now: float): return now", set()),
    ],
)
def test_a_conversation_is_known_by_its_marks(tmp_path: Path, text: str, marks: set[str]) -> None:
    assert marks == marks_of_a_conversation(one(tmp_path, text))


def test_a_clock_that_is_read_is_found(tmp_path: Path) -> None:
    assert {"time.monotonic"} == clocks_read(one(tmp_path, "import time\nnow = time.monotonic()"))
    assert {"time.monotonic"} == clocks_read(one(tmp_path, "from time import monotonic"))
    assert {"datetime.now"} == clocks_read(one(tmp_path, "from datetime import datetime\nnow = datetime.now()"))
    assert set() == clocks_read(one(tmp_path, "import time\nnow = clock.now()"))
    assert set() == clocks_read(one(tmp_path, "def draw(random: Random): return random.sample([1], 1)"))


def test_a_module_is_tested_where_it_lies_or_says(tmp_path: Path) -> None:
    code = "def f(): ...\n"
    named = '"""Doc.\n\nTests: tests/test_a.py, tests/b/test_c.py\n"""\n' + code
    files = {
        "kadcrawl/urls.py": code,
        "kadcrawl/a/b/c.py": code,
        "kadcrawl/a/named.py": named,
        "kadcrawl/version.py": "V = 1\n",
    }
    write(tmp_path, files)
    sources = [source for source in read(tmp_path) if source.path.startswith("kadcrawl/")]
    assert ["tests/test_a.py", "tests/b/test_c.py"] == files_that_test(sources[1])
    expected = ["tests/a/b/test_c.py", "tests/test_a.py", "tests/b/test_c.py", "tests/test_urls.py"]
    assert [f"there is no {path}" for path in expected] == [found.text for found in untested(tmp_path, sources)]
    write(tmp_path, dict.fromkeys(expected, ""))
    assert [] == untested(tmp_path, sources)


@pytest.mark.parametrize(
    "line",
    [
        "Tests: test_a.py",
        "tests: tests/test_a.py",
        "Tests: tests/a.py and tests/b.py",
        "Tests: tests/a.py\nTests: tests/b.py",
    ],
)
def test_a_malformed_line_of_tests_is_found(tmp_path: Path, line: str) -> None:
    source = one(tmp_path, f'"""Doc.\n\n{line}\n"""\ndef f(): ...\n')
    with pytest.raises(ValueError, match="write one line"):
        files_that_test(source)
    assert 1 == len(untested(tmp_path, [source]))


def test_a_folder_without_a_documented_package_is_found(tmp_path: Path) -> None:
    write(tmp_path, {"kadcrawl/__init__.py": '"""Doc."""', "kadcrawl/a/b/c.py": "", "kadcrawl/a/__init__.py": ""})
    expected = ["kadcrawl/a/__init__.py", "kadcrawl/a/b/__init__.py"]
    assert expected == [found.file for found in folders_without_theory(tmp_path)]
    write(tmp_path, dict.fromkeys(expected, '"""Doc."""'))
    assert [] == folders_without_theory(tmp_path)


def test_rooms_are_the_first_names_below_the_package() -> None:
    paths = ["kadcrawl/__init__.py", "kadcrawl/urls.py", "kadcrawl/crawl/scope/traps.py", "sim/a/b.py"]
    assert ["kadcrawl", "urls", "crawl", "sim"] == [room_of(path) for path in paths]


def test_figures_are_printed_with_their_worst_places(tmp_path: Path) -> None:
    files = {f"kadcrawl/crawl/{name}.py": f'"""What {name} is."""\n' for name in "abc"}
    write(tmp_path, files | {"sim/a.py": '"""What sim is."""\n'})
    run = CliRunner().invoke
    worst = run(main, ["--root", str(tmp_path), "--worst", "1"])
    assert (0, 1) == (worst.exit_code, worst.output.count("[opening, pronoun]"))
    whole = run(main, ["--root", str(tmp_path), "--all", "--room", "crawl"]).output
    assert (3, 0) == (whole.count("[opening, pronoun]"), whole.count("sim/a.py"))
    figures = json.loads(run(main, ["--root", str(tmp_path), "--json"]).output)
    assert 4 == figures["first sentences that depart"]["values"]["departing"]
    assert 3 == figures["files per folder"]["values"]["max"]
