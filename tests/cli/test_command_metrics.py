"""Test --metrics of the command: which peer answers where, and what a person is told."""

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from kadcrawl.cli.app import main
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.cli.machine_options import METRICS_ADDRESS
from kadcrawl.settings.config import Config
from kadcrawl.system.file_names import METRICS_TARGETS
from tests.support.monitored import scrape, value
from tests.support.sites.endless_web import endless_web
from tests.support.swarm.command import crawl, ended, finished, kadcrawl, start, until


def target(directory: Path) -> tuple[str, int]:
    """Return the address that a peer's directory names for Prometheus."""
    ((named,),) = [one["targets"] for one in json.loads((directory / METRICS_TARGETS).read_text())]
    host, _, port = named.rpartition(":")
    return host, int(port)


async def test_each_peer_of_a_local_crawl_has_metrics_of_its_own(tmp_path: Path) -> None:
    async with endless_web() as endless:
        process = await start(*crawl(tmp_path, endless.seed, peers=2), "--metrics", "127.0.0.1:0")
        await until(lambda: len(finished(tmp_path)) > 20, process)
        addresses = [target(tmp_path / name) for name in ("peer-1", "peer-2")]
        both = [await scrape(address) for address in addresses]
        assert [1, 1] == [value(series, "contacts") for series in both]
        assert 20 < sum(value(series, "pages_total", outcome="first") for series in both)
        endless.end()
        run = await ended(process)
        assert 0 == run.code, run
        assert f"{tmp_path}/peer-*/metrics.json name the addresses of the metrics" in run.err
        assert not list(tmp_path.glob(f"peer-*/{METRICS_TARGETS}"))


@pytest.mark.parametrize("option", ["--metrics", "--web"])
async def test_an_address_that_is_taken_is_one_error_and_is_named_as_no_address(option: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = await kadcrawl(*crawl(tmp_path, "http://127.0.0.1:9/", peers=1), option, address)
    assert (2, "") == (run.code, run.out)
    (line,) = run.err.splitlines()
    assert line.startswith(f"kadcrawl: cannot listen for {option} on {address}: ")
    assert line.endswith(f"; choose another: {option} HOST:PORT")


async def test_start_says_where_its_metrics_are(tmp_path: Path) -> None:
    listen = ("--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    peer = await start("start", *listen, "--data", str(tmp_path))
    await until(lambda: (tmp_path / METRICS_TARGETS).exists(), peer)
    host, port = target(tmp_path)
    assert 1 == value(await scrape((host, port)), "verdict", verdict="no_seeds")
    address = (tmp_path / "address").read_text().strip()
    assert 0 == (await kadcrawl("stop", "--peer", address)).code
    run = await ended(peer)
    assert f"metrics at http://{host}:{port}/metrics" in run.out + run.err


def test_peers_of_one_command_take_ports_in_a_row() -> None:
    machine = MachineSettings(metrics=("127.0.0.1", 14_160))
    assert ("127.0.0.1", 14_162) == machine.of_peer(3).metrics
    assert ("127.0.0.1", 0) == MachineSettings(metrics=("127.0.0.1", 0)).of_peer(3).metrics
    assert MachineSettings().of_peer(3).metrics is None


def test_the_settings_of_a_machine_reach_its_peer(tmp_path: Path) -> None:
    machine = MachineSettings(metrics=("::1", 14_160))
    assert ("::1", 14_160) == machine.config(Config(data=tmp_path)).metrics


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("[::1]", ("::1", 14_160)),
        (":9000", ("127.0.0.1", 9000)),
        ("1", ("127.0.0.1", 14_160)),
        ("0", None),
    ],
)
def test_an_address_may_leave_out_what_is_usual(said: str, expected: tuple[str, int] | None) -> None:
    assert expected == METRICS_ADDRESS.convert(said, None, None)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--metrics", "http://127.0.0.1:9/"], "write --metrics after the URLs, or --metrics=127.0.0.1:14160"),
        (["http://127.0.0.1:9/", "--metrics", "example.org"], "--metrics listens on an IP address"),
        (["http://127.0.0.1:9/", "--metrics", "127.0.0.1:70000"], "is not HOST:PORT"),
    ],
)
def test_a_mistake_is_said(arguments: list[str], expected: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["crawl", "--data", str(tmp_path / "data"), *arguments])
    assert 2 == done.exit_code
    assert expected in done.output


def test_an_address_that_others_reach_is_warned_of(tmp_path: Path) -> None:
    said = ["crawl", "http://127.0.0.1:9/", "--data", str(tmp_path / "data"), "--summary", str(tmp_path / "none" / "x")]
    warned = CliRunner().invoke(main, [*said, "--metrics", "0.0.0.0"])
    assert "whoever reaches 0.0.0.0 can read the metrics, without a password" in warned.output
    for address in ("127.0.0.1", "localhost:0", "[::1]:0"):
        assert "can read the metrics" not in CliRunner().invoke(main, [*said, "--metrics", address]).output
