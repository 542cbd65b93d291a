"""An idle peer and an idle leaf load nothing that they do without: each module costs memory for the life of a process.

The lists are exact. A package that is missing here was added to every idle process: import it where it is used, or add
it to the list if an idle process does need it.
"""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from scripts.bench_memory import IdleMemory, measured, table_of
from scripts.idle_processes import IdleProcess, idle_swarm

OF_AIOHTTP = {"aiohappyeyeballs", "aiosignal", "attr", "backports", "brotlicffi", "frozenlist", "idna"}
OF_LEAF = {"ada_url", "aiohttp", "cryptography", "isal", "msgpack", "msgspec", "multidict", "propcache"} | (
    {"publicsuffixlist", "uvloop", "webencodings", "xxhash", "yarl", "typing_extensions"} | OF_AIOHTTP
)
PACKAGES = {"leaf": OF_LEAF, "peer": OF_LEAF | {"kademlia", "platformdirs", "rpcudp", "umsgpack"}}
NEVER = {
    *("aiohttp.web", "aiohttp.web_app", "aiohttp.web_urldispatcher", "html.parser"),
    *("kadcrawl.cli.app", "kadcrawl.cli.commands.check", "kadcrawl.cli.commands.crawl", "kadcrawl.cli.doctor"),
    *("kadcrawl.crawl.content.sitemap", "kadcrawl.crawl.proxies.fetcher", "kadcrawl.crawl.proxies.health_checks"),
    *("lxml", "numpy", "parsel", "pip", "pyexpat", "python_socks", "rich", "selectolax.lexbor", "xml.parsers.expat"),
    *("difflib", "setuptools", "sklearn", "bitarray", "pybloom_live", "fsspec", "pyarrow", "pymongo"),
    *("cryptography.x509", "cryptography.hazmat.primitives.serialization"),
    *("aiodns", "pycares", "click", "cloup", "kadcrawl.cli.group", "kadcrawl.cli.options"),
}
"""Modules that no idle process loads."""
NEVER_IN_LEAF = {
    *("aiohttp.web_server", "kadcrawl.crawl.clocks.clock_host", "kadcrawl.lending.lender", "kadcrawl.link.server"),
    *("kadcrawl.overlay.overlay", "kadcrawl.peer.peer", "kadcrawl.peer.runtime", "kadcrawl.replication.cells"),
}
"""Modules of a full peer."""
_NOT_HERE = {"sitecustomize", "usercustomize"}


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[IdleProcess]]:
    with idle_swarm(tmp_path_factory.mktemp("idle"), records_imports=True) as started:
        yield started


def packages(modules: frozenset[str]) -> set[str]:
    """Return the installed packages that these modules are of, without Python's own and kadcrawl."""
    tops = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"kadcrawl"} - _NOT_HERE
    return {name for name in tops if not name.startswith("_") and find_spec(name) is not None}


def test_an_idle_process_loads_no_package_that_it_does_without(swarm: list[IdleProcess]) -> None:
    for one in swarm:
        assert PACKAGES[one.kind] == packages(one.modules()), one.name


def test_an_idle_process_loads_nothing_of_unused_features(swarm: list[IdleProcess]) -> None:
    for one in swarm:
        assert set() == one.modules() & NEVER, one.name
    leaf = swarm[-1]
    assert "leaf" == leaf.kind
    assert set() == leaf.modules() & NEVER_IN_LEAF
    assert swarm[0].modules() >= NEVER_IN_LEAF, "the names are those of modules"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has smaps_rollup")
def test_the_memory_of_an_idle_process_is_that_of_the_kernel(swarm: list[IdleProcess]) -> None:
    found = [measured(one, len(one.modules())) for one in swarm]
    for one in found:
        assert 10 < one.private_mb < one.pss_mb < one.rss_mb
        assert 0 < one.cpu_s
    assert found[-1].modules < found[0].modules
    assert len(found) == table_of(found).row_count


def test_no_process_of_the_swarm_is_left(tmp_path: Path) -> None:
    with idle_swarm(tmp_path) as started:
        assert ["first peer", "second peer", "leaf"] == [one.name for one in started]
    assert all(one.process.poll() is not None for one in started)


def test_a_process_above_its_aim_is_in_the_table() -> None:
    (row,) = table_of([IdleMemory("leaf", "leaf", 41.0, 30.0, 28.0, 0.4, 700)]).columns[1].cells
    assert "41" == row
