"""Test `kadcrawl web`: the address it prints opens the dashboard, once, and mistakes are said."""

import json
import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner

from kadcrawl import Config, Job, Peer
from kadcrawl.cli.app import main
from kadcrawl.cli.ask import asking
from kadcrawl.cli.commands.web import read_dashboard
from kadcrawl.cli.machine import MachineSettings
from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.messages import Ok, OpenDashboard
from kadcrawl.members.key_file import write_secret
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.system.file_names import DASHBOARD
from tests.support.swarm.command import kadcrawl
from tests.support.viewers import ANY_PORT, viewer


async def test_the_address_opens_the_dashboard_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_browser(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", open_browser)
    async with Peer(Config(data=tmp_path / "peer-1", port=0, web=ANY_PORT), Job()):
        said = CliRunner().invoke(main, ["web", str(tmp_path)])
        assert (0, f"{opened[0]}\n") == (said.exit_code, said.output)
        url, _, token = opened[0].partition("#token=")
        async with viewer(tmp_path / "peer-1", is_in=False) as browser:
            assert browser.url == url.rstrip("/")
            assert [200, 401] == [(await browser.begin(token)).status for _ in range(2)]
        printed = CliRunner().invoke(main, ["web", str(tmp_path), "--no-open"])
        assert (0, 1) == (printed.exit_code, len(opened))
        assert token not in printed.output


async def test_a_machine_without_a_browser_is_told_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    async with Peer(Config(data=tmp_path, port=0, web=ANY_PORT), Job()):
        said = CliRunner().invoke(main, ["web", str(tmp_path)])
        assert 0 == said.exit_code
        assert "open the address in one on this machine" in said.output


@pytest.mark.parametrize("key", [None, SwarmKey.generate()])
async def test_a_peer_without_a_dashboard_opens_it_for_its_owner(tmp_path: Path, key: SwarmKey | None) -> None:
    async with Peer(Config(data=tmp_path, port=0, swarm_key=key), Job()) as peer:
        await peer.begin()
        note = peer.config.data / "address"
        host, port = peer.listens_at
        note.write_text(f"{host}:{port}\n")
        for _ in range(2):
            process = await kadcrawl("web", str(tmp_path), "--no-open")
            assert 0 == process.code, process
            assert peer.web_address is not None
        async with viewer(tmp_path) as browser:
            assert 200 == (await browser.ask("/session")).status


async def test_another_member_opens_no_dashboard(tmp_path: Path) -> None:
    key = SwarmKey.generate()
    async with Peer(Config(data=tmp_path, port=0, swarm_key=key), Job()) as peer:
        await peer.begin()
        async with asking(key) as member:
            with pytest.raises(RemoteError):
                await member.ask(peer.contact, OpenDashboard(peer.contact.id), Ok, 10)
        assert peer.web_address is None


def test_without_a_running_peer_the_command_says_what_to_do(tmp_path: Path) -> None:
    for data, why in ((tmp_path / "none", "there is no"), (tmp_path, "no peer runs in")):
        said = CliRunner().invoke(main, ["web", str(data), "--no-open"])
        assert 2 == said.exit_code
        assert why in said.output


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"url": "http://127.0.0.1/", "secret": "x"}', '{"url": 1, "secret": 2}']
)
def test_a_damaged_file_is_said(tmp_path: Path, text: str) -> None:
    write_secret(tmp_path / DASHBOARD, text.encode())
    with pytest.raises(ConfigError, match="is damaged"):
        read_dashboard(tmp_path / DASHBOARD)


def test_a_file_that_others_can_read_is_no_secret(tmp_path: Path) -> None:
    (tmp_path / DASHBOARD).write_text(json.dumps({"url": "http://127.0.0.1/", "secret": "00"}))
    (tmp_path / DASHBOARD).chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        read_dashboard(tmp_path / DASHBOARD)


def test_the_first_peer_of_a_command_has_the_dashboard(tmp_path: Path) -> None:
    machine = MachineSettings(web=("127.0.0.1", 14_190), web_control=True)
    assert [("127.0.0.1", 14_190), None] == [machine.of_peer(number).web for number in (1, 2)]
    config = machine.config(Config(data=tmp_path))
    assert (("127.0.0.1", 14_190), True) == (config.web, config.web_control)


def test_mistakes_are_said(tmp_path: Path) -> None:
    for options, why in (
        (["--web", "example.org:80"], "--web listens on an IP address"),
        (["--web", "https://example.org/"], "write --web after the URLs"),
    ):
        said = CliRunner().invoke(main, ["start", "--data", str(tmp_path), *options])
        assert 2 == said.exit_code
        assert why in said.output
