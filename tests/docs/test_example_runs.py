"""Examples run as their pages say, and each fault is a problem at its line."""

import asyncio
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.support.examples import machine
from tests.support.examples.example_web import ExampleWeb
from tests.support.examples.page import blocks
from tests.support.examples.plan import plan
from tests.support.examples.processes import of_page
from tests.support.examples.programs import pip, scp
from tests.support.examples.repository_commands import read_repository
from tests.support.examples.run_page import Outcome, run_page
from tests.support.examples.virtual_network import PACE, VirtualNetwork, quicken
from tests.support.examples.web_server import serving

REPOSITORY = read_repository(Path(__file__).parents[2])


async def run_markdown(directory: Path, markdown: str) -> Outcome:
    planned = plan(blocks(markdown), REPOSITORY)
    assert [] == planned.problems
    return await run_page(planned, directory)


async def problems(directory: Path, markdown: str) -> list[tuple[int, str]]:
    outcome = await run_markdown(directory, markdown)
    return [(problem.line, problem.message) for problem in (*outcome.problems, *outcome.differences)]


def console(text: str) -> str:
    return f"```console\n{text}\n```\n"


async def test_a_right_page_has_no_problem(tmp_path: Path) -> None:
    page = console("$ echo a; echo b >&2\na\nb\n$ sh -c 'exit 3'\n$ echo $?\n3\n$ true") + (
        '```json title="in/a.json"\n{"b": 1}\n```\n'
        "```sh\ntest -f in/a.json\n```\n"
        "```python\nimport json\nassert json.load(open('in/a.json')) == {'b': 1}\n```\n"
        "```python\ndef test_it(tmp_path):\n    assert tmp_path\n```\n"
    )
    assert [] == await problems(tmp_path, page)


@pytest.mark.parametrize(
    ("page", "line", "message"),
    [
        (
            console("$ true\n$ echo 30 pages\n31 pages"),
            3,
            "the page shows\n  | 31 pages\nbut the output is\n  | 30 pages",
        ),
        (console("$ true\nsomething"), 2, "(nothing)"),
        (console("$ ls no-such-file"), 2, "exit code 2 instead of 0"),
        (console("$ true\n$ echo $?\n1"), 2, "exit code 0 instead of 1"),
        (console("$ false\n$ echo $?\n2"), 2, "exit code 1 instead of 2"),
        (console("$ no-such-command"), 2, "command not found"),
        (console("$ exit 4"), 2, "exit code 4 instead of 0"),
        ("Text.\n\n```sh\nfalse\ntrue\n```\n", 3, "the script failed with exit code 1"),
        ("```python\nassert False, 'no'\n```\n", 1, "AssertionError: no"),
        ("```python\ndef test_it():\n    assert False\n```\n", 1, "the tests failed with exit code 1"),
        ("```toml\ndelay = 'x'\n```\n", 1, "kadcrawl check failed"),
        ('```toml title="kadcrawl.toml"\nno-such-key = 1\n```\n', 1, "kadcrawl check failed"),
        (console("$ pip install no-such-package"), 2, "no-such-package is not installed"),
    ],
)
async def test_a_planted_fault_is_found_at_its_line(tmp_path: Path, page: str, line: int, message: str) -> None:
    [(found_line, found_message)] = await problems(tmp_path, page)
    assert line == found_line
    assert message in found_message


async def test_a_command_without_end_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.Machine.run, "__defaults__", (80, 50, 5.0))
    [(line, message)] = await problems(tmp_path, console("$ echo a; sleep 1000\n$ true"))
    assert line == 2
    assert "it did not end within" in message
    assert "| a" in message


async def test_a_peer_that_does_not_get_ready_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "READY_S", 0.3)
    (tmp_path / "page").mkdir()
    page = console("$ kadcrawl() { sleep 1000; }\n$ kadcrawl start https://example.org/")
    [(line, message)] = await problems(tmp_path / "page", page)
    assert (3, True) == (line, "it was not ready" in message)


async def test_new_outputs_come_from_the_run(tmp_path: Path) -> None:
    outcome = await run_markdown(tmp_path, console("$ echo a\n?\n$ echo b\nb"))
    assert [(3, 1, ["a"])] == [(new.line, new.count, list(new.lines)) for new in outcome.new_outputs]


async def test_a_shell_keeps_its_directory_and_variables_to_itself(tmp_path: Path) -> None:
    page = console("$ mkdir a && cd a && X=1\n$ pwd; echo $X\n/home/you/a\n1\none$ pwd; echo $X\n/home/you\n")
    assert [] == await problems(tmp_path, page)


async def test_a_shell_that_has_ended_is_followed_by_another(tmp_path: Path) -> None:
    assert [] == await problems(tmp_path, console("$ cd /; exit 4\n$ echo $?\n4\n$ pwd\n/home/you"))


async def test_status_is_asked_until_it_says_what_the_page_shows(tmp_path: Path) -> None:
    page = console(
        "$ kadcrawl() { echo x >> asked; wc -l < asked; }\n$ kadcrawl status\n3\n$ kadcrawl stop\n9\n$ wc -l < asked\n4"
    )
    [(line, message)] = await problems(tmp_path, page)
    assert (5, True) == (line, "| 4" in message)


async def test_files_are_copied_between_machines(tmp_path: Path) -> None:
    page = console(
        "one$ echo key > swarm.key\none$ scp swarm.key two:\ntwo$ cat swarm.key\nkey\n$ scp two:swarm.key mine"
    )
    assert [] == await problems(tmp_path, page + console("$ cat mine\nkey"))


async def test_an_environment_of_its_own_has_the_package_under_test(tmp_path: Path) -> None:
    page = console(
        "$ python3 -m venv .venv\n$ . .venv/bin/activate\n$ python -m pip install kadcrawl\n"
        "$ .venv/bin/kadcrawl --version\nkadcrawl, version ..."
    )
    assert [] == await problems(tmp_path, page)


async def test_jobs_of_the_shell_can_be_killed(tmp_path: Path) -> None:
    page = console("$ sleep 1000 &\n$ jobs -r | wc -l\n1\n$ kill -9 %1\n$ jobs -r")
    assert [] == await problems(tmp_path, page)


def python_that_waits() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)  # other-example"])


async def test_pkill_finds_processes_of_the_page_alone(tmp_path: Path) -> None:
    other = python_that_waits()
    try:
        page = console("$ python -c 'import time; time.sleep(1000)  # other-example' &\n$ pkill -9 -f other-example")
        assert [] == await problems(tmp_path, page + console("$ pkill -f other-example\n$ echo $?\n1"))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_nothing_survives_its_page(tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
    page = console(f'$ python -c "{stubborn}" &\n$ setsid sleep 1000 &\n$ echo $EXAMPLE_PAGE > mark')
    assert [] == await problems(tmp_path, page)
    mark = (tmp_path / "machines/here/mark").read_text().strip()
    assert re.fullmatch("[0-9a-f]{16}", mark)
    assert [] == list(of_page(mark))


async def test_a_swarm_finds_itself_at_the_addresses_of_the_page(tmp_path: Path) -> None:
    """The addresses are in the outputs as well, and a crawl sees the sites by their names."""
    page = console(
        "one$ kadcrawl keygen > swarm.key; chmod 600 swarm.key; scp swarm.key two:\n"
        "one$ kadcrawl start https://example.org/item/1 --scope prefix --contact you@example.org \\\n"
        "  --key-file swarm.key --listen 10.0.0.1:4160\n"
        "peer 12345678 listens on 10.0.0.1:4160 and lets in whoever has crawl-data/swarm.key\n"
        "on other machines, ... others join with: kadcrawl join ... --bootstrap 10.0.0.1:4160\n"
        "two$ kadcrawl join --key-file swarm.key --bootstrap 10.0.0.1:4160 --listen 0.0.0.0:4160\n"
        "peer 12345678 listens on 10.0.0.2:4160 ...\n...\n"
        "two$ kadcrawl status | grep -c @10.0.0\n2\n"
        "one$ grep -c https://example.org/item/1 crawl-data/pages.jsonl\n1"
    )
    assert [] == await problems(tmp_path, page)


async def test_no_example_reaches_the_internet(tmp_path: Path) -> None:
    program = (
        "import errno, socket, urllib.request\n"
        "assert b'<h1>Item 1' in urllib.request.urlopen('https://example.org/item/1').read()\n"
        "assert urllib.request.urlopen('http://example.org/item/1').url == 'https://example.org/item/1'\n"
        "for place, number in ((('93.184.215.99', 80), errno.ENETUNREACH), (('example.com', 80), socket.EAI_NONAME)):\n"
        "    try:\n"
        "        socket.create_connection(place)\n"
        "    except OSError as error:\n"
        "        assert error.errno == number, error\n"
        "    else:\n"
        "        raise AssertionError(place)\n"
    )
    assert [] == await problems(tmp_path, f"```python\n{program}```\n")


async def test_pages_run_at_the_same_time_with_the_same_ports(tmp_path: Path) -> None:
    program = (
        "import socket, time\nwith socket.create_server(('127.0.0.1', 4160)) as server:\n"
        "    assert server.getsockname() == ('127.0.0.1', 4160)\n    time.sleep(0.5)\n"
    )
    directories = [tmp_path / name for name in "ab"]
    for directory in directories:
        directory.mkdir()
    found = await asyncio.gather(*(problems(one, f"```python\n{program}```\n") for one in directories))
    assert [[], []] == found


# --- the parts


def network_of(machine_number: int, ports: Path) -> VirtualNetwork:
    return VirtualNetwork("127.9.9.", machine_number, {}, {"93.184.215.14:443": 8443}, str(ports))


def test_addresses_of_a_page_and_of_the_kernel(tmp_path: Path) -> None:
    one = network_of(1, tmp_path)
    for shown, real in (
        (("10.0.0.2", 4160), ("127.9.9.2", 4160)),
        (("127.0.0.1", 4160), ("127.9.9.101", 4160)),
    ):
        assert real == one.real(shown)
        assert shown == one.shown(real)
    assert ("127.0.0.1", 8443) == one.real(("93.184.215.14", 443))
    assert ("127.9.9.1", 0) == one.source(("127.9.9.2", 4160))
    assert ("127.9.9.101", 0) == one.source(("127.9.9.101", 4160))
    for unreachable in ("93.184.215.14", "192.168.1.1"):
        with pytest.raises(OSError, match="unreachable"):
            one.real((unreachable, 80))


def test_a_machine_that_listens_everywhere_is_reached_by_both_addresses(tmp_path: Path) -> None:
    one, two = network_of(1, tmp_path), network_of(2, tmp_path)
    one.listens_everywhere(4160)
    assert ("127.9.9.1", 4160) == one.real(("0.0.0.0", 4160)) == one.real(("127.0.0.1", 4160))
    assert ("127.9.9.1", 4160) == two.real(("10.0.0.1", 4160))
    assert ("127.9.9.102", 4160) == two.real(("127.0.0.1", 4160))


def test_a_delay_passes_at_the_pace_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sites:
        def set_delay(self, name: str, delay_s: float) -> tuple[str, float]:
            return name, delay_s

    monkeypatch.setenv(PACE, "50")
    monkeypatch.delitem(sys.modules, "kadcrawl_sim", raising=False)
    quicken(Sites, "set_delay")
    assert ("a", 0.02) == Sites().set_delay("a", delay_s=1.0) == Sites().set_delay("a", 1.0)
    monkeypatch.setitem(sys.modules, "kadcrawl_sim", sys)
    assert ("a", 1.0) == Sites().set_delay("a", 1.0)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["install", "kadcrawl"], None),
        (["install", "-U", "kadcrawl[sim,parquet]", "aiohttp>=3"], None),
        (["install", "kadcrawl[no-such]"], "no extra no-such"),
        (["install", "no-such-package"], "not installed"),
        (["freeze"], "alone"),
    ],
)
def test_pip_knows_the_packages_that_are_there(arguments: list[str], why: str | None) -> None:
    said = pip(arguments, REPOSITORY.extras)
    assert said is None if why is None else why in str(said)


def test_scp_says_what_is_not_there(tmp_path: Path) -> None:
    assert "gone: No such file or directory" == scp([str(tmp_path / "gone"), "two:"], tmp_path)


def test_an_unchanged_page_is_answered_by_304_and_a_live_page_never_is() -> None:
    web = ExampleWeb()
    for path, status in (("/docs/", 304), ("/live/", 200)):
        tag = web.answer("example.org", path, {}, {}).headers["ETag"]
        assert status == web.answer("example.org", path, {}, {"If-None-Match": tag}).status


def test_the_web_is_the_same_in_each_run() -> None:
    program = (
        "from tests.support.examples.example_web import ExampleWeb\n"
        "print(ExampleWeb().answer('example.org', '/docs/', {}, {}))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True, cwd=Path(__file__).parents[2]
        ).stdout
        for _ in range(2)
    }
    assert 1 == len(outputs)


async def test_the_web_ends_with_no_connection_left_open(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)

    def silent_client(port: int) -> ssl.SSLSocket:
        """Ask for a page, and say nothing when the server says goodbye."""
        context = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
        client = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="example.org")
        client.sendall(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        assert client.recv(1)
        return client

    def left(ports: Collection[int]) -> list[object]:
        at_ports = [one for one in loop._transports.values() if one.get_extra_info("sockname")[1] in ports]  # type: ignore[attr-defined]
        return [one for one in at_ports if one.get_extra_info("socket").fileno() >= 0]

    async with serving(tmp_path) as sites:
        ports = set(sites.values())
        client = await asyncio.to_thread(silent_client, next(sites[name] for name in sites if name.endswith(":443")))
        assert left(ports)
    assert not left(ports)
    client.close()
