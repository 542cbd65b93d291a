"""Every private of a library that this project relies on, so that an upgrade that changes one fails here first.

The libraries that kadcrawl relies on so have an upper bound in setup.cfg; after this test holds with a newer release,
raise the bound.
"""

import ast
import inspect
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import pytest

from scripts.house.source import read
from tests.support.cases import cases

ROOT = Path(__file__).parent.parent


class Private(NamedTuple):
    """One name that is no part of a library's promise, or is overridden."""

    library: str
    name: str
    """``module:Class.attribute``. The constructor of the class may set the attribute."""
    used_in: str
    parameters: tuple[str, ...] | None = None
    """The parameters of the calls here, without `self`. None if it is not called, or takes any parameters."""


METERED = "kadcrawl/crawl/fetch/metered_connection.py"
PROXIES = "kadcrawl/crawl/fetch/proxy_connector.py"
FETCHER = "kadcrawl/crawl/fetch/fetcher.py"
CLIENT = "kadcrawl/link/client_connection.py"
SERVER = "kadcrawl/link/server_connection.py"
PROTOCOL = "kadcrawl/overlay/protocol.py"
ROUTING = "kadcrawl/overlay/routing.py"
PYBLOOM = "kadcrawl/store/bloom/pybloom.py"
LOOP = "sim/loop.py"
MACHINES = "sim/machines.py"
RESPONSE_HANDLER = "aiohttp.client_proto:ResponseHandler"
CONNECTOR = "aiohttp.connector:TCPConnector"
CONNECTING = ("req", "traces", "timeout")
BLOOM = "pybloom_live.pybloom:BloomFilter"

PRIVATES = (
    Private("aiohttp", f"{RESPONSE_HANDLER}.set_response_params", METERED),
    Private("aiohttp", f"{RESPONSE_HANDLER}.data_received", METERED, ("data",)),
    Private("aiohttp", f"{RESPONSE_HANDLER}.feed_data", METERED, ("data", "size")),
    Private("aiohttp", f"{RESPONSE_HANDLER}.force_close", METERED, ()),
    Private("aiohttp", f"{RESPONSE_HANDLER}._payload", METERED),
    Private("aiohttp", f"{RESPONSE_HANDLER}._parser", METERED),
    Private("aiohttp", f"{CONNECTOR}._factory", METERED),
    Private("aiohttp", f"{CONNECTOR}._loop", METERED),
    Private("aiohttp", f"{CONNECTOR}._update_proxy_auth_header_and_build_proxy_req", PROXIES, ("req",)),
    Private("aiohttp", f"{CONNECTOR}._create_direct_connection", PROXIES, (*CONNECTING, "client_error")),
    Private("aiohttp", f"{CONNECTOR}._create_proxy_connection", PROXIES, CONNECTING),
    Private("aiohttp", f"{CONNECTOR}._resolve_host", PROXIES, ("host", "port")),
    Private("aiohttp", f"{CONNECTOR}._get_ssl_context", PROXIES, ("req",)),
    Private("aiohttp", f"{CONNECTOR}._wrap_existing_connection", PROXIES, ("req", "timeout")),
    Private("aiohttp", "aiohttp:ClientResponse.start", FETCHER, ("connection",)),
    Private("aiohttp", "aiohttp:ClientRequest.send", FETCHER, ("conn",)),
    Private("aiohttp", "aiohttp:ClientWebSocketResponse._writer", CLIENT),
    Private("aiohttp", "aiohttp.http_websocket:WebSocketWriter.transport", CLIENT),
    Private("aiohttp", "aiohttp.web_protocol:RequestHandler._payload_parser", SERVER),
    Private("aiohttp", "aiohttp.http_websocket:WebSocketReader.feed_data", SERVER, ("data",)),
    Private("aiohttp", "aiohttp.connector:monotonic", MACHINES),
    Private("aiohttp", "aiohttp.connector:random", MACHINES),
    Private("aiohttp", "aiohttp.connector:DefaultResolver", MACHINES),
    Private("aiohttp", "aiohttp.web_response:rfc822_formatted_time", MACHINES, ()),
    Private("aiohttp", "aiohttp.web_response:SERVER_SOFTWARE", MACHINES),
    Private("aiohttp", "aiohttp.client:os", MACHINES),
    Private("aiohttp", "aiohttp.http_websocket:WebSocketWriter.__init__", MACHINES, ("random",)),
    Private("asyncio", "asyncio:Task._log_destroy_pending", LOOP),
    Private("kademlia", "kademlia.protocol:KademliaProtocol.__init__", PROTOCOL, ("source_node", "storage", "ksize")),
    Private("kademlia", "kademlia.routing:KBucket.__init__", ROUTING, ("replacementNodeFactor",)),
    Private("kademlia", "kademlia.routing:KBucket.replacement_nodes", ROUTING),
    Private("kademlia", "kademlia.routing:KBucket.nodes", ROUTING),
    Private("kademlia", "kademlia.routing:KBucket.is_new_node", ROUTING, ("node",)),
    Private("kademlia", "kademlia.routing:KBucket.add_node", ROUTING, ("node",)),
    Private("kademlia", "kademlia.routing:KBucket.touch_last_updated", ROUTING, ()),
    Private("kademlia", "kademlia.routing:RoutingTable.__init__", ROUTING, ("protocol", "ksize", "node")),
    Private("kademlia", "kademlia.routing:RoutingTable.flush", ROUTING, ()),
    Private("kademlia", "kademlia.routing:RoutingTable.ksize", ROUTING),
    Private("kademlia", "kademlia.routing:RoutingTable.remove_contact", ROUTING, ("node",)),
    Private("kademlia", "kademlia.node:Node.long_id", ROUTING),
    Private("pybloom-live", f"{BLOOM}.FILE_FMT", PYBLOOM),
    Private("pybloom-live", f"{BLOOM}.fromfile", PYBLOOM, ("f",)),
    Private("pybloom-live", f"{BLOOM}.make_hashes", PYBLOOM),
    Private("pybloom-live", f"{BLOOM}.bitarray", PYBLOOM),
    Private("pybloom-live", f"{BLOOM}.count", PYBLOOM),
    Private("pybloom-live", f"{BLOOM}.add", PYBLOOM, ("key", "skip_check")),
)
BOUNDED = sorted({private.library for private in PRIVATES} - {"asyncio"})


def has(owner: Any, attribute: str) -> bool:
    """Return whether the attribute exists, or methods of the class set it on its objects."""
    if hasattr(owner, attribute):
        return True
    methods = [vars(base).values() for base in getattr(owner, "__mro__", ())]
    codes = [code for values in methods for value in values if (code := getattr(value, "__code__", None))]
    return any(attribute in code.co_names for code in codes)


@cases("private", PRIVATES)
def test_what_we_rely_on_is_there(private: Private) -> None:
    path, _, attribute = private.name.rpartition("." if "." in private.name.partition(":")[2] else ":")
    assert has(resolve_name(path), attribute), f"{private.library} has no {private.name} any more: {private.used_in}"
    if private.parameters is not None:
        missing = {*private.parameters} - {*inspect.signature(resolve_name(private.name)).parameters}
        assert not missing, f"{private.name} takes no {missing} any more: {private.used_in}"


@cases("private", PRIVATES)
def test_each_is_used_where_the_table_says(private: Private) -> None:
    text = (ROOT / private.used_in).read_text()
    name = re.split("[.:]", private.name)[-2 if private.name.endswith("__init__") else -1]
    if name not in ("KademliaProtocol",):
        assert re.search(rf"\b{name}\b", text) or "replacementNodeFactor" in (private.parameters or ())


@pytest.mark.parametrize("library", BOUNDED)
def test_a_library_with_private_names_in_use_has_an_upper_bound(library: str) -> None:
    (requirement,) = re.findall(rf"^    {library}([=<>].*)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    assert "<" in requirement or "==" in requirement


def test_no_other_private_of_a_library_is_in_use() -> None:
    """A private that no file here defines is somebody else's."""
    ours = {"_replace", "_make", "_exit"}  # Of a NamedTuple and of os, and documented.
    used = set()
    for source in read(ROOT, ["kadcrawl", "sim"]):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                ours.add(node.name)
            elif isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
                if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                    ours.add(node.attr)
                else:
                    used.add((source.path, node.attr))
    named = {(private.used_in, re.split("[.:]", private.name)[-1]) for private in PRIVATES}
    assert sorted({(path, name) for path, name in used if name not in ours} - named) == []
