"""The kept inputs of fuzzing run once more, in plain Python. The fuzzer chooses and keeps such inputs."""

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from click.testing import CliRunner

from fuzz import corpus
from fuzz.__main__ import main
from fuzz.campaign import TargetResult, hear
from fuzz.corpus import KEPT_BYTES_MAX, keep, kept, lines_run
from fuzz.target import SWOLLEN_BYTES_MAX, Bites, Target, plain
from fuzz.targets import NAMES, target
from fuzz.watch import CPU_MOST_S, Sight, Watch
from kadcrawl.link.wire.messages import Reply, Request
from kadcrawl.urls import canonical

LINES_MAX = 400_000
"""The most lines of kadcrawl that an input may run: a robots.txt of 64 KB with a rule in every few bytes takes
180,000."""


@pytest.mark.parametrize("name", NAMES)
def test_no_input_raises_or_makes_too_much_work(name: str) -> None:
    one = target(name)
    for data in [*one.seeds(), *kept(name).values()]:
        assert len(data) <= one.bytes_max
        assert lines_run(one.one, data).total() <= LINES_MAX


def test_what_is_kept_is_small() -> None:
    assert {path.name for path in corpus.KEPT.iterdir()} <= set(NAMES)
    for name in NAMES:
        assert sum(map(len, kept(name).values())) <= KEPT_BYTES_MAX


def test_every_message_is_among_the_frames() -> None:
    from fuzz.frames import every_message

    assert {type(message) for message in every_message()} == {*Request.__args__, *Reply.__args__}


def test_an_input_is_taken_from_the_front_and_swells() -> None:
    bites = Bites(b"\x07\x01\x02abc")
    assert (7, 0x0102, b"ab", 1) == (bites.number(), bites.number(2), bites.take(2), bites.left)
    assert (b"c", 0, b"") == (bites.take(9), bites.number(), bites.rest())
    assert Bites(plain(b"abc")).swollen() == b"abc"
    assert Bites(b"\xf2\x01abc").swollen() == b"a" + b"bc" * 4
    assert SWOLLEN_BYTES_MAX / 2 < len(Bites(b"\xff\x00xyz").swollen()) <= SWOLLEN_BYTES_MAX
    assert Bites(b"\xff\x09x").swollen() == b"x"


def test_inputs_are_kept_that_run_other_lines_the_smallest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "KEPT", tmp_path)

    def one(data: bytes) -> None:
        for word in data.decode().split():
            canonical(word)

    urls = Target("urls", one, lambda: [b"http://a/"])
    candidates = [b"http://a/b", b"http://a/#bcd", b"http://a/#b", b"http://a/" + b"b" * 9000, b"http://u@a/"]
    assert keep(urls, candidates) == 3
    assert set(kept("urls").values()) == {b"http://a/#b", b"http://u@a/", b"http://a/" + b"b" * 9000}
    assert keep(urls, candidates) == 0
    monkeypatch.setattr(corpus, "KEPT_BYTES_MAX", 10_000)
    assert keep(urls, [b"http://a/%7e" + b"x" * 1000]) == 0, "there is no room"
    assert keep(urls, [b"http://a/%7e", b"http://\xff"]) == 1, "what raises is not kept"


def test_faults_are_written_down_once_for_each_place(tmp_path: Path) -> None:
    def one(data: bytes) -> int:
        if data == b"ok":
            return 5
        assert data != b"a", "one place"
        return len(data.decode())

    told = tmp_path / "sight.json"
    watch = Watch(Target("x", one, list), tmp_path, told)
    for data in (b"ok", b"a", b"ok", b"\xff", b"a", b"\xfe\xff", b"ok"):
        watch(data)
    sight = msgspec.json.decode(told.read_bytes(), type=Sight)
    assert [b"a", b"\xff"] == [Path(path).read_bytes() for path in sight.faults]
    assert {path.name for path in tmp_path.iterdir()} == {told.name, *(Path(path).name for path in sight.faults)}
    assert (7, 15) == (watch.sight.runs, watch.sight.units)


def test_what_libfuzzer_says_is_understood() -> None:
    result = TargetResult("html")
    for line in (
        "#2\tINITED cov: 251 ft: 260 corp: 1/1b exec/s: 0 rss: 49Mb",
        "#4096\tpulse  cov: 266 ft: 512 corp: 169/20Kb lim: 4096 exec/s: 312 rss: 65Mb",
        "stat::number_of_executed_units: 28399",
        "stat::average_exec_per_sec:     312",
        "stat::peak_rss_mb:              66",
        "artifact_prefix='c/html-'; Test unit written to c/html-timeout-9c47dd69",
        "artifact_prefix='c/html-'; Test unit written to c/html-crash-1",
    ):
        hear(result, line)
    assert (28_399, 312, 266, 169, 66) == (result.runs, result.runs_s, result.edges, result.inputs, result.peak_mb)
    assert {"c/html-timeout-9c47dd69": "takes too long", "c/html-crash-1": "ends the process"} == result.crashes


def test_an_input_is_replayed_in_plain_python(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"\0http://a.example/")
    before = sys.gettrace()
    result = CliRunner().invoke(main, ["replay", "urls", str(file)])
    assert (0, before) == (result.exit_code, sys.gettrace())
    assert "nothing raised" in result.output


def test_without_atheris_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.__main__.find_spec", lambda name: None)
    for arguments in (["urls", "--runs", "1"], ["run"], []):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 1
        assert "make fuzz" in result.output
    assert CliRunner().invoke(main, ["--help"]).exit_code == 0
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2


@pytest.mark.parametrize(("found", "died", "code"), [({}, [], 0), ({"raises": ""}, [], 1), ({}, ["Killed"], 1)])
def test_a_run_that_finds_something_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, str], died: list[str], code: int
) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"x")
    crashes = {str(file): what for what in found}

    class Over:
        """A campaign that has nothing more to do."""

        running = False

        def __init__(self, *arguments: object) -> None:
            self.results = {"urls": TargetResult("urls", crashes=crashes, over=True, output=died)}

        def finish(self) -> None:
            pass

    monkeypatch.setattr("fuzz.__main__.Campaign", Over)
    monkeypatch.setattr("fuzz.__main__.find_spec", lambda name: True)
    assert code == CliRunner().invoke(main, ["urls", "--runs", "1"]).exit_code


def test_an_input_that_takes_too_long_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test has a clock of its own: each input takes as many milliseconds as it has bytes."""
    clock = 0.0
    monkeypatch.setattr("fuzz.watch.time", SimpleNamespace(thread_time=lambda: clock, monotonic=time.monotonic))

    def one(data: bytes) -> None:
        nonlocal clock
        clock += len(data) / 1000

    watch = Watch(Target("x", one, list), tmp_path, tmp_path / "sight.json")
    slow = bytes(int(1000 * CPU_MOST_S) + 1)
    for data in (b"first", bytes(50), slow[2:], slow, b"last"):
        watch(data)
    assert [slow] == [Path(path).read_bytes() for path in watch.sight.slow]
    assert 0.1 == CPU_MOST_S, "as the README says"


def test_the_process_that_fuzzes_may_take_a_gigabyte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[str] = []

    def set_up(arguments: list[str], watch: Callable[[bytes], None]) -> None:
        flags.extend(arguments)

    atheris = SimpleNamespace(instrument_imports=lambda include: nullcontext(), Setup=set_up, Fuzz=lambda: None)
    monkeypatch.setitem(sys.modules, "atheris", atheris)
    from fuzz.child import main as child

    child("urls", str(tmp_path), str(tmp_path), str(tmp_path / "sight.json"), "1", "1")
    monkeypatch.delitem(sys.modules, "fuzz.child")
    assert {"-rss_limit_mb=1024", "-timeout=60", f"-max_len={target('urls').bytes_max}"} <= {*flags}
