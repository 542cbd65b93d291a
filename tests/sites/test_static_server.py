"""Test that the static server serves a directory as any web server does, and reports its requests."""

import json
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from scripts import truth
from scripts.static_server import StaticDirectory

PAGE = b"<a href=docs>one</a><a href='docs/%C3%A9t%C3%A9.html'>two</a><a href=lost.html>three</a>"
FOUND = {"/": 200, "/docs": 301, "/docs/": 200, "/docs/%C3%A9t%C3%A9.html": 200, "/lost.html": 404}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    (root / "docs").mkdir(parents=True)
    (root / "index.html").write_bytes(PAGE)
    (root / "docs/index.html").write_bytes(b"<h1>Docs</h1>")
    (root / "docs/été.html").write_bytes("<h1>été</h1>".encode("latin-1"))
    (root / "list.csv.gz").write_bytes(b"\x1f\x8b")
    (root / "inside.html").symlink_to("docs/index.html")
    (root / "outside.html").symlink_to("../secret.html")
    (tmp_path / "secret.html").write_bytes(b"secret")
    return root


@pytest.mark.parametrize(
    ("path", "status", "header", "body"),
    [
        ("/", 200, ("Content-Type", "text/html"), PAGE),
        ("/?query", 200, ("Content-Type", "text/html"), PAGE),
        ("/docs", 301, ("Location", "/docs/"), b""),
        ("/docs/", 200, ("Content-Type", "text/html"), b"<h1>Docs</h1>"),
        ("/docs/%C3%A9t%C3%A9.html", 200, ("Content-Type", "text/html"), b"<h1>\xe9t\xe9</h1>"),
        ("/list.csv.gz", 200, ("Content-Type", "application/gzip"), b"\x1f\x8b"),
        ("/inside.html", 200, ("Content-Type", "text/html"), b"<h1>Docs</h1>"),
    ],
)
def test_files_go_out_as_they_are(root: Path, path: str, status: int, header: tuple[str, str], body: bytes) -> None:
    reply = StaticDirectory(root).reply(path)
    assert (reply.status, reply.body) == (status, body)
    assert reply.headers == dict([header])


@pytest.mark.parametrize(
    "path",
    ["/nothing.html", "/outside.html", "/../secret.html", "/%2e%2e/secret.html", "//etc/passwd", "/%00", "/docs/x/"],
)
def test_nothing_outside_the_root_is_served(root: Path, path: str) -> None:
    assert StaticDirectory(root).reply(path).status == 404


def test_files_are_kept_up_to_the_limit_and_read_again_beyond(root: Path) -> None:
    """The page is kept at the limit. With one byte less it is not."""
    kept, read_again = StaticDirectory(root, len(PAGE)), StaticDirectory(root, len(PAGE) - 1)
    assert kept.reply("/").body == read_again.reply("/").body == PAGE

    (root / "index.html").write_bytes(b"new")

    assert kept.reply("/").body == PAGE
    assert read_again.reply("/").body == b"new"


def test_each_site_has_an_address_and_the_log_is_complete_at_the_end(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    command = [sys.executable, "-m", "scripts.static_server", "--log", str(log), str(root), str(root / "docs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first, second = json.loads(process.stdout.readline())
        found = truth.crawl([first])
        connection = HTTPConnection(second.removeprefix("http://").removesuffix("/"), timeout=60)
        connection.request("GET", "/", headers={"User-Agent": "test"})
        assert connection.getresponse().read() == b"<h1>Docs</h1>"
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0

    assert found == {first.removesuffix("/") + path: status for path, status in FOUND.items()}
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert {entry["site"] + "/" for entry in entries} == {first, second}
    assert entries[-1]["user_agent"] == "test"
    assert {entry["path"]: entry["status"] for entry in entries[:-1]} == FOUND | {"/robots.txt": 404}
