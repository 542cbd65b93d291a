"""What is kept of fuzzing: each input once more, in plain Python, and how such inputs are chosen."""

import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from fuzz import corpus
from fuzz.__main__ import main
from fuzz.campaign import Result, hear
from fuzz.corpus import KEPT_BYTES_MAX, keep, kept, lines_run
from fuzz.target import SWOLLEN_BYTES_MAX, Bites, Target, plain
from fuzz.targets import NAMES, target
from fuzz.watch import Sight, Watch
from kadcrawl.link.messages import Reply, Request
from kadcrawl.urls import canonical

LINES_MAX = 400_000
"""Of kadcrawl that one input may run: a robots.txt of 64 KB with a rule in every few bytes takes 180,000."""


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
    result = Result("html")
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
