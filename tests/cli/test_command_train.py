"""Test the commands that lead from a measuring crawl to a network that predicts."""

from dataclasses import replace
from pathlib import Path

import pytest

from kadcrawl.balance.machine_profile import MachineProfile
from kadcrawl.balance.predict import BATCHES_LEAST, BatchTiming
from kadcrawl.balance.training_data import BATCHES_FILE, batch_line, load_batches, load_network
from kadcrawl.cli import machine_options
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.settings.job import Job
from tests.support.swarm.command import SITES, crawl, finished, kadcrawl, slow_web

NODE = MachineProfile(2, 2.4, 4.0, 10.0, 5.0)
POWERS = [f"--power={name}={getattr(NODE, name)}" for name in MachineProfile.__dataclass_fields__]
PREDICTIVE = ("--balance", "predictive", "--block", "2", "--update", "0.2", "--fetches", "1")


def write_timings(path: Path, count: int) -> None:
    """Write timings of peers that are twice as quick with twice the bandwidth."""
    made = [
        BatchTiming(replace(NODE, net_mbps=net), urls, urls / net) for net in (5.0, 10.0, 20.0) for urls in range(1, 65)
    ]
    path.write_bytes(b"".join(map(batch_line, made[:count])))


async def test_a_crawl_measures_and_another_predicts_by_what_was_learned(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    write_timings(tmp_path / "before" / BATCHES_FILE, 3 * 64)
    network = tmp_path / "network.json"
    run = await kadcrawl("train", str(tmp_path / "before"), "--output", str(network))
    assert run.code == 0, run
    assert f"learned from 192 batches of 3 kinds of machines; {network}" in run.out
    assert 64 / 10 == pytest.approx(load_network(network).seconds(NODE, 64), rel=0.2)
    async with slow_web(120) as site:
        command = crawl(tmp_path / "data", site.url("/0"), peers=2)
        run = await kadcrawl(*command, *PREDICTIVE, *POWERS, "--network", str(network))
        assert run.code == 0, run
        assert {site.url(f"/{n}", site=n % SITES): 1 for n in range(120)} == dict(finished(tmp_path / "data"))
    assert {NODE} == {batch.profile for batch in load_batches([tmp_path / "data"])[0]}


@pytest.mark.parametrize("count", [0, BATCHES_LEAST - 1])
async def test_too_little_to_learn_from_is_one_clear_sentence(tmp_path: Path, count: int) -> None:
    if count:
        write_timings(tmp_path / BATCHES_FILE, count)
    run = await kadcrawl("train", str(tmp_path), "--output", str(tmp_path / "network.json"))
    assert run.code == 2, run
    assert len(run.err.splitlines()) == 1
    assert "too few to learn from" in run.err or "--balance predictive first, with a --power" in run.err
    assert not (tmp_path / "network.json").exists()


@pytest.mark.parametrize("seed", [-1, 2**32])
async def test_a_seed_that_is_none_is_said(tmp_path: Path, seed: int) -> None:
    run = await kadcrawl("train", str(tmp_path), "--output", str(tmp_path / "network.json"), "--seed", str(seed))
    assert run.code == 2, run
    assert "--seed" in run.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--balance", "drain", "--power", "cores=1"], "for --balance predictive"),
        (["--network", __file__], "for --balance predictive"),
        (["--balance", "off", "--update", "5"], "lends no pages"),
    ],
)
async def test_an_option_that_would_do_nothing_is_refused(tmp_path: Path, options: list[str], why: str) -> None:
    run = await kadcrawl(*crawl(tmp_path / "data", "http://127.0.0.2:9/"), *options)
    assert run.code == 2, run
    assert why in run.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("balance", ["predictive", "drain"])
def test_it_is_said_which_powers_the_machine_does_not_tell(
    balance: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        machine_options, "undetected", lambda declared: [name for name in ("net_mbps",) if name not in declared]
    )
    job = Job(balance=balance)  # type: ignore[arg-type]
    machine_options.say_missing(MachineSettings(powers={"net_mbps": 1.0}), job)
    assert not capsys.readouterr().err
    machine_options.say_missing(MachineSettings(), job)
    said = capsys.readouterr().err.splitlines()
    assert (balance == "predictive") == any("--power net_mbps=NUMBER" in line for line in said)
    assert len(said) <= 1


async def test_a_leaf_has_no_powers(tmp_path: Path) -> None:
    command = ["join", "--leaf", "--bootstrap", "127.0.0.2:9", "--data", str(tmp_path / "data")]
    run = await kadcrawl(*command, "--power", "cores=1")
    assert run.code == 2, run
    assert "leave out --network and --power" in run.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--network", "/nowhere/network.json"], "cannot read the network"),
        (["--network", __file__], "is no network"),
        (["--power", "net_mbps"], "net_mbps=100"),
        (["--power", "net=1"], "no power 'net'"),
        (["--power", "cores=-1"], "cores must be a number above 0"),
        (["--fetches", "0"], "--fetches"),
    ],
)
async def test_a_mistake_about_the_machine_is_said(tmp_path: Path, options: list[str], why: str) -> None:
    run = await kadcrawl(*crawl(tmp_path / "data", "http://127.0.0.2:9/"), *PREDICTIVE[:2], *options)
    assert run.code == 2, run
    assert why in run.err
    assert not (tmp_path / "data").exists()
