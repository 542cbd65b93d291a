"""Every check has a time limit, is named while it takes long, and ends no other check."""

import asyncio
import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kadcrawl.cli.doctor import checkup, machine_probes
from kadcrawl.cli.doctor.check_result import CheckOutcome, CheckResult
from kadcrawl.cli.doctor.checkup import Checkup, Options
from kadcrawl.cli.doctor.helper_probes import helpers


async def checked(data: Path, say: Callable[[str], None] = lambda text: None) -> list[CheckResult]:
    return [finding async for finding in Checkup(Options(data=data, listen=("127.0.0.1", 0))).findings(say)]


async def test_each_check_finds_something(tmp_path: Path) -> None:
    findings = await checked(tmp_path)
    assert [
        "Python",
        "libraries",
        "extras",
        "helpers",
        "open files",
        "memory",
        "disk",
        "directory",
        "key",
        "addresses",
        "listen",
        "clock",
    ] == list(dict.fromkeys(finding.check for finding in findings))


async def test_a_check_that_hangs_is_named_and_given_up_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> list[CheckResult]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(checkup, "NOTICE_S", 0.01)
    told: list[str] = []
    hung = Checkup(Options(data=tmp_path, listen=("127.0.0.1", 0)))
    checks = hung.checks
    monkeypatch.setattr(
        Checkup,
        "checks",
        property(lambda _: [checkup.Check("the disk", hang, 0.02), checks[-1]]),
    )
    disk, clock = [finding async for finding in hung.findings(told.append)]
    assert ("disk", CheckOutcome.PROBLEM) == (disk.check, disk.outcome)
    assert "no result within 0.02 s" in disk.said
    assert "clock" == clock.check
    assert "checking the disk ..." == told[0]


async def test_a_missing_library_is_a_problem_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def importing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.endswith("cli.doctor.network_probes"):
            raise ModuleNotFoundError("No module named 'aiodns'", name="aiodns")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", importing)
    (finding,) = [one for one in await checked(tmp_path) if one.check == "addresses"]
    assert (CheckOutcome.PROBLEM, "No module named 'aiodns'") == (finding.outcome, finding.said)


async def test_an_error_of_the_system_is_a_problem_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(data: Path) -> None:
        raise PermissionError(13, "Permission denied", "/secret")

    monkeypatch.setattr(machine_probes, "disk_facts", refused)
    (finding,) = [one for one in await checked(tmp_path) if one.check == "disk"]
    assert finding.outcome is CheckOutcome.PROBLEM
    assert "Permission denied: '/secret'" in finding.said


async def test_a_kadcrawl_that_is_not_installed_as_a_package_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_probes, "DISTRIBUTION", "no-such-package-anywhere")
    assert CheckOutcome.NOTE is (await checked(tmp_path))[0].outcome


def test_the_compiled_helpers_of_the_tests_are_in_use() -> None:
    assert helpers().uvloop
    assert helpers().http_parser
