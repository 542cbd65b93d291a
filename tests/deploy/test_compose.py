"""Test the Compose file: it is valid, its commands are commands of kadcrawl, and its job is a job."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kadcrawl.cli.app import main
from kadcrawl.settings.job_file import read

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose"
FILE = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
SERVICES: dict[str, Any] = FILE["services"]


def test_the_file_keeps_to_the_compose_specification() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    run = subprocess.run([*check, COMPOSE / "compose.yaml"], capture_output=True, text=True)
    assert 0 == run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_each_command_is_one_of_kadcrawl(service: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    verb, *arguments = SERVICES[service]["command"]
    context = main.commands[verb].make_context(verb, [*arguments])
    assert (("peers", 4160),) == context.params["bootstrap"]
    assert ["peers"] == SERVICES[service]["networks"]["default"]["aliases"], "the name of --bootstrap"


def test_each_peer_has_a_disk_of_its_own_and_may_write_nowhere_else() -> None:
    disks = [service["volumes"][0] for service in SERVICES.values()]
    assert [f"{name}:/data" for name in SERVICES] == disks
    assert set(SERVICES) == set(FILE["volumes"])
    for service in SERVICES.values():
        assert (True, ["ALL"], "6m") == (service["read_only"], service["cap_drop"], service["stop_grace_period"])


@pytest.mark.parametrize("directory", ["compose", "kubernetes"])
def test_the_job_is_a_job(directory: str) -> None:
    job = read(COMPOSE.parent / directory / "job.toml").job
    assert (("https://example.org/",), "you@example.org") == (job.seeds, job.contact)
