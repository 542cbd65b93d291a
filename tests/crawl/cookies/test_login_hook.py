"""Test that a login hook runs in a process of its own, with bounds, and that nothing tells its secrets."""

import subprocess
import sys
from pathlib import Path

import pytest

from kadcrawl.crawl.cookies.login_hook import call_login_hook, check_login_hooks
from kadcrawl.crawl.cookies.login_request import LoginAnswer, LoginHookError, LoginPage
from kadcrawl.errors import StartError
from kadcrawl.settings.limits import Limits

PAGE = LoginPage(
    url="https://a.test/login", status=200, text="token=t1", cookies={}, fields={"user": "me"}, secrets={"p": "s3cret"}
)
HOOKS = """
import os, sys, time

def good(page):
    print(page.secrets)
    return {"fields": {**page.fields, **page.secrets, "token": page.text.partition("=")[2]}}

def variables(page):
    return {"fields": {name: "" for name in os.environ if name.startswith("KADCRAWL_")} or {"none": ""}}

def fails(page):
    raise ValueError(page.secrets["p"])

def endless(page):
    time.sleep(600)

def exits(page):
    os._exit(3)

def large(page):
    return {"fields": {"a": "x" * 1_000_000}}

def strange(page):
    return {"fields": {"a": object()}}

def greedy(page):
    return bytearray(8 * 1024**3)
"""


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logins_of_a_test.py").write_text(HOOKS)
    monkeypatch.chdir(tmp_path)


async def call(name: str) -> LoginAnswer:
    return await call_login_hook(f"logins_of_a_test:{name}", PAGE, Limits(record_time_s=1.0))


@pytest.mark.usefixtures("hooks")
async def test_a_hook_makes_the_request_of_a_page(capfd: pytest.CaptureFixture[str]) -> None:
    assert LoginAnswer(fields={"user": "me", "p": "s3cret", "token": "t1"}) == await call("good")
    assert "s3cret" not in "".join(capfd.readouterr())


@pytest.mark.usefixtures("hooks")
async def test_a_hook_sees_no_variable_of_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KADCRAWL_SECRET_WIKI_LOGIN", "x")
    assert LoginAnswer(fields={"none": ""}) == await call("variables")


@pytest.mark.usefixtures("hooks")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("fails", r"^ValueError \(logins_of_a_test.py:12\)$"),
        ("endless", "took more than 1 s"),
        ("exits", "ended without an answer"),
        ("large", "ended without an answer"),
        ("strange", "TypeError"),
        ("greedy", "MemoryError"),
        ("missing", "module logins_of_a_test has no function missing"),
    ],
)
async def test_a_hook_that_fails_is_an_error_without_its_secrets(name: str, why: str) -> None:
    with pytest.raises(LoginHookError, match=why) as error:
        await call(name)
    assert "s3cret" not in str(error.value)


@pytest.mark.usefixtures("hooks")
async def test_a_machine_without_a_hook_says_so_before_it_begins() -> None:
    await check_login_hooks(["logins_of_a_test:good"], Limits())
    with pytest.raises(StartError, match=r"lacks the login hook nowhere:good .*: ModuleNotFoundError.*put its module"):
        await check_login_hooks(["nowhere:good"], Limits())


@pytest.mark.parametrize("call", [b"", b'{"hook":"my_ho'])
def test_a_worker_whose_peer_dies_as_it_starts_says_nothing(call: bytes) -> None:
    command = [sys.executable, "-c", "from kadcrawl.crawl.cookies.login_worker import main; main()"]
    run = subprocess.run(command, input=call, capture_output=True, timeout=60, check=False)
    assert (0, b"", b"") == (run.returncode, run.stdout, run.stderr)
