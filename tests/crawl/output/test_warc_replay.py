"""Test that the reader of an archive sees the fetched page: fetched from a live server, written, replayed by pywb."""

import asyncio
import gzip
import json
import subprocess
import sys
import time
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from random import Random

import brotlicffi
import pytest
from aiohttp import web

from kadcrawl.crawl.fetch.address_guard import Guard
from kadcrawl.crawl.fetch.fetcher import Fetcher
from kadcrawl.crawl.output.warc import WarcWriter, warc_name
from kadcrawl.settings.limits import Limits

pytestmark = pytest.mark.skipif(
    find_spec("pywb") is None, reason="pywb, which replays the WARC here, is not installed on this Python"
)

PAGE = b"<!doctype html><title>caf\xc3\xa9</title>" + b"<p>hello</p>\n" * 500
BINARY = Random(7).randbytes(30_000)

# pywb patches the standard library when imported, so it gets a process of its own; ``id_`` asks for no rewriting.
REPLAY = """
import hashlib, json, sys
from pywb.manager.manager import main
main(["init", "all"])
main(["add", "all", sys.argv[1]])
from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client
client = Client(FrontEndApp())
seen = {}
for url in sys.argv[2:]:
    answer = client.get("/all/2026id_/" + url, headers={"Accept-Encoding": "gzip, deflate, br"})
    seen[url] = [answer.status_code, answer.headers.get("Content-Encoding"), hashlib.sha256(answer.data).hexdigest()]
print("REPLAYED " + json.dumps(seen))
"""


async def pieces(request: web.Request, body: bytes, encoding: str | None) -> web.StreamResponse:
    """Answer chunked, in three chunks."""
    response = web.StreamResponse(headers={"Content-Type": "text/html; charset=utf-8"})
    if encoding:
        response.headers["Content-Encoding"] = encoding
    response.enable_chunked_encoding()
    await response.prepare(request)
    for start in range(0, len(body), len(body) // 3 + 1):
        await response.write(body[start : start + len(body) // 3 + 1])
    return response


def encoded_site() -> web.Application:
    def plain(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
        return web.Response(body=body, status=status, headers={"Content-Type": "text/html", **(headers or {})})

    async def answer(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/plain":
                return plain(PAGE)
            case "/gzip":
                return plain(gzip.compress(PAGE), headers={"Content-Encoding": "gzip"})
            case "/br":
                return plain(brotlicffi.compress(PAGE), headers={"Content-Encoding": "br"})
            case "/chunked":
                return await pieces(request, PAGE, None)
            case "/gzipchunked":
                return await pieces(request, gzip.compress(PAGE), "gzip")
            case "/binary":
                return plain(BINARY, headers={"Content-Type": "application/octet-stream"})
            case "/empty":
                return plain(b"")
            case _:
                return plain(b"no such page", 404)

    application = web.Application()
    application.router.add_get("/{path}", answer)
    return application


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[object], list[object]]]:
    """Return status, Content-Encoding and digest of the body for each path, as fetched and as replayed."""
    directory = tmp_path_factory.mktemp("replay")
    paths = ["plain", "gzip", "br", "chunked", "gzipchunked", "binary", "empty", "missing"]
    fetched = asyncio.run(archived(directory, paths))
    (warc,) = directory.glob("*.warc.gz")
    run = subprocess.run(
        [sys.executable, "-c", REPLAY, str(warc), *fetched],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("REPLAYED ")]
    assert lines, run.stderr
    seen = json.loads(lines[0].removeprefix("REPLAYED "))
    return {path: (fetched[url], seen[url]) for path, url in zip(paths, fetched, strict=True)}


async def archived(directory: Path, paths: list[str]) -> dict[str, list[object]]:
    runner = web.AppRunner(encoded_site())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fetcher = Fetcher(Limits(), Guard(["127.0.0.0/8"]), "kadcrawl/0.1", time.time)
    await fetcher.start()
    writer = WarcWriter.open(
        directory, warc_name("replay", "01234567"), None, info={}, bytes_max=10**9, random=Random(1), now=lambda: 0.0
    )
    fetched: dict[str, list[object]] = {}
    for path in paths:
        answer = await fetcher.fetch(f"http://127.0.0.1:{runner.addresses[0][1]}/{path}")
        assert answer.error is None
        assert answer.content in (PAGE, BINARY, b"", b"no such page")
        writer.write(answer)
        fetched[answer.url] = [
            answer.status,
            answer.header(b"content-encoding"),
            sha256(answer.body).hexdigest(),
        ]
    writer.close()
    await fetcher.close()
    await runner.cleanup()
    return fetched


@pytest.mark.parametrize("path", ["plain", "gzip", "br", "chunked", "gzipchunked", "binary", "empty", "missing"])
def test_pywb_replays_byte_for_byte(replayed: dict[str, tuple[list[object], list[object]]], path: str) -> None:
    as_fetched, as_replayed = replayed[path]
    assert as_replayed == as_fetched
