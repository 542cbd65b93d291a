"""Test that the late parts of aiohttp are there when they are needed, in processes that import it anew."""

import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from kadcrawl.system.lean_imports import LateAuthorities, late_authorities
from tests.support.sites.proxies import certificate

HOST = "127.0.0.1"
FETCHES = """
import asyncio, sys
from pathlib import Path
from kadcrawl.system.lean_imports import LateAuthorities, import_lean
import_lean()
import aiohttp
from kadcrawl.settings.job import Job
from tests.crawl.fetch.test_tls import fetched, tls_server
assert "pycares" not in sys.modules, "no name was resolved"
assert type(aiohttp.connector._SSL_CONTEXT_VERIFIED) is LateAuthorities
async def main():
    for path in sys.argv[1:]:
        async with tls_server(Path(path)) as url:
            print((await fetched(url, Job())).status)
asyncio.run(main())
assert type(aiohttp.connector._SSL_CONTEXT_VERIFIED) is not LateAuthorities
"""
RESOLVES = """
import asyncio, sys
from kadcrawl.system.lean_imports import import_lean
import_lean()
from kadcrawl.crawl.fetch.late_resolver import LateResolver
async def main():
    resolver = LateResolver()
    assert "pycares" not in sys.modules
    print([one["host"] for one in await resolver.resolve("127.0.0.1")])
    await resolver.close()
    assert "pycares" in sys.modules
asyncio.run(main())
"""


def said(script: str, *words: str, **variables: str) -> str:
    command = [sys.executable, "-c", script, *words]
    return subprocess.check_output(command, text=True, env={**os.environ, **variables})


def test_the_authorities_of_the_system_are_trusted_and_no_others(tmp_path: Path) -> None:
    trusted = certificate(tmp_path, HOST)
    (tmp_path / "other").mkdir()
    other = certificate(tmp_path / "other", HOST)
    found = said(FETCHES, str(trusted), str(other), SSL_CERT_FILE=str(trusted), SSL_CERT_DIR=str(tmp_path / "none"))
    assert ["200", "None"] == found.split()


def test_the_first_name_loads_the_resolver() -> None:
    assert "['127.0.0.1']" == said(RESOLVES).strip()


@pytest.mark.parametrize("use", ["wrap_bio", "wrap_socket", "cert_store_stats", "get_ca_certs"])
def test_a_context_reads_its_authorities_at_first_use(
    use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path, HOST)))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    with late_authorities():
        context = ssl.create_default_context()
    assert type(context) is LateAuthorities
    assert context.verify_mode is ssl.CERT_REQUIRED
    if use == "wrap_bio":
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=HOST)
    elif use == "wrap_socket":
        with socket.socket(type=socket.SOCK_DGRAM) as datagrams, pytest.raises(NotImplementedError):
            context.wrap_socket(datagrams, server_hostname=HOST)
    else:
        assert getattr(context, use)()
    assert type(context) is ssl.SSLContext
    assert 1 == context.cert_store_stats()["x509"]


def test_other_contexts_read_them_at_once() -> None:
    with late_authorities():
        pass
    assert type(ssl.create_default_context()) is ssl.SSLContext


def test_a_command_that_asks_a_peer_reads_no_authorities_and_loads_no_resolver() -> None:
    asks = "import sys, kadcrawl.cli.ask, aiohttp; print(type(aiohttp.connector._SSL_CONTEXT_VERIFIED).__name__)"
    assert "LateAuthorities" == said(f"{asks}; assert 'pycares' not in sys.modules").strip()
