"""The network as a process of an example sees it: the addresses of the page, and behind them loopback.

`install` puts a layer below `socket.socket`, in each Python process of an example, before any other module is loaded.
A page says 10.0.0.1:4160 and https://example.org/, and the process sees these addresses in all that it does and prints.
The kernel sees other addresses: machine N, which is 10.0.0.N to all machines of the page, is 127.A.B.N, and its own
loopback is 127.A.B.(100+N). A and B are drawn for each page, so that pages run at the same time with the ports that
they name. A site is a public address that leads to the port of a server on the real loopback. All other addresses are
unreachable: no example reaches the internet.

uvloop opens sockets below Python, so asyncio's own loop stands in for it. The delay of a site passes at a pace of its
own: it is still a delay, with one request at a time, but no example waits a second for each page.
"""

import errno
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import socket
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

VARIABLE: Final = "EXAMPLE_NETWORK"
"""The environment variable that holds the network as JSON."""
PACE: Final = "EXAMPLE_PACE"
"""The environment variable that holds how many seconds of a delay pass in one second."""
MACHINES: Final = "10.0.0."
LOOPBACK: Final = "127.0.0.1"
ANY: Final = "0.0.0.0"
LOOPBACK_OFFSET: Final = 100
"""Added to the number of a machine for its loopback address. Machines have the numbers 1 to 99."""
ROUTE_PROBE: Final = "192.0.2.1"
"""A peer asks for the route to this address (documentation range), to learn its own. Nothing is sent there."""

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class VirtualNetwork:
    """The addresses of one machine of a page, and the addresses that the kernel knows for them."""

    prefix: str
    """The first three numbers of this page's addresses on loopback, with a point at the end."""
    machine: int
    names: Mapping[str, str]
    """Host name -> public address."""
    sites: Mapping[str, int]
    """ "ADDRESS:PORT" of a site -> port of its server on the real loopback."""
    ports: str
    """A directory that has a file for each port on which a machine listens on all its addresses."""

    def real(self, address: Address) -> Address:
        """Return the kernel's address for an address of the page. Raises OSError if it is unreachable."""
        host, port = address[0] or ANY, address[1]
        if (served := self.sites.get(f"{host}:{port}")) is not None:
            return LOOPBACK, served
        if host.startswith(MACHINES):
            return self.prefix + host.removeprefix(MACHINES), port
        if host in (LOOPBACK, "localhost"):
            here = self._marker(port).exists()
            return self.prefix + str(self.machine if here else self.machine + LOOPBACK_OFFSET), port
        if host in (ANY, ROUTE_PROBE):
            return self.prefix + str(self.machine), port
        if host.startswith("127."):
            return host, port
        raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))

    def shown(self, address: Address) -> Address:
        """Return the address of the page for an address of the kernel."""
        host, port = address[0], address[1]
        if not host.startswith(self.prefix):
            return host, port
        number = int(host.removeprefix(self.prefix))
        return (LOOPBACK if number > LOOPBACK_OFFSET else f"{MACHINES}{number}"), port

    def source(self, towards: Address) -> Address:
        """Return the address from which this machine sends to an address of the kernel."""
        loops = towards[0].startswith(self.prefix) and int(towards[0].removeprefix(self.prefix)) > LOOPBACK_OFFSET
        return self.prefix + str(self.machine + LOOPBACK_OFFSET if loops else self.machine), 0

    def listens_everywhere(self, port: int) -> None:
        """Remember that this machine listens on all its addresses at this port."""
        self._marker(port).touch()

    def _marker(self, port: int) -> Path:
        return Path(self.ports, f"{self.machine}-{port}")


def as_json(network: VirtualNetwork) -> str:
    """Return the value of the environment variable for this network."""
    return json.dumps({name: getattr(network, name) for name in VirtualNetwork.__slots__})


def install() -> None:
    """Put the network of the environment below this process. Without the variable nothing changes."""
    if VARIABLE not in os.environ:
        return
    network = VirtualNetwork(**json.loads(os.environ[VARIABLE]))
    _replace_socket_methods(network)
    _replace_name_lookup(network.names)
    sys.modules["uvloop"] = _Uvloop("uvloop")
    changes = {
        "aiohttp.resolver": _replace_resolver(network.names),
        "kadcrawl.crawl.frontier.active_sites": _quicken_sites,
    }
    sys.meta_path.insert(0, _ChangedModules(changes))


def _replace_socket_methods(network: VirtualNetwork) -> None:
    kind: Any = socket.socket
    plain = {name: getattr(kind, name) for name in ("bind", "connect", "connect_ex", "sendto", "recvfrom", "accept")}
    getsockname, getpeername = kind.getsockname, kind.getpeername
    sites: WeakKeyDictionary[socket.socket, Address] = WeakKeyDictionary()
    """Socket -> the address of the site that it is connected to. All sites have one server."""

    def bind(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_INET:
            plain["bind"](self, address)
            return
        plain["bind"](self, network.real(address))
        if address[0] in ("", ANY):
            network.listens_everywhere(getsockname(self)[1])

    def connecting(name: str) -> Callable[[socket.socket, Any], Any]:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family != socket.AF_INET:
                return plain[name](self, address)
            real = network.real(address)
            if f"{address[0]}:{address[1]}" in network.sites:
                sites[self] = address
            if real[0].startswith(network.prefix) and getsockname(self)[1] == 0:
                plain["bind"](self, network.source(real))
            return plain[name](self, real)

        return connect

    def sendto(self: socket.socket, data: Any, *arguments: Any) -> Any:
        if self.family != socket.AF_INET:
            return plain["sendto"](self, data, *arguments)
        return plain["sendto"](self, data, *arguments[:-1], network.real(arguments[-1]))

    def recvfrom(self: socket.socket, *arguments: Any) -> Any:
        data, address = plain["recvfrom"](self, *arguments)
        return data, network.shown(address) if self.family == socket.AF_INET and address else address

    def accept(self: socket.socket) -> Any:
        accepted, address = plain["accept"](self)
        return accepted, network.shown(address) if self.family == socket.AF_INET else address

    def naming(name_of: Callable[[socket.socket], Any]) -> Callable[[socket.socket], Any]:
        return lambda self: network.shown(name_of(self)) if self.family == socket.AF_INET else name_of(self)

    kind.bind, kind.connect, kind.connect_ex = bind, connecting("connect"), connecting("connect_ex")
    kind.sendto, kind.recvfrom, kind.accept = sendto, recvfrom, accept
    kind.getsockname = naming(getsockname)
    kind.getpeername = lambda self: sites.get(self) or naming(getpeername)(self)


def _replace_name_lookup(names: Mapping[str, str]) -> None:
    plain: Any = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is None or name == "localhost" or ":" in name or name.replace(".", "").isdigit():
            return plain(host, *arguments, **options)
        if name not in names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return plain(names[name], *arguments, **options)

    socket.getaddrinfo = getaddrinfo


class _Uvloop(types.ModuleType):
    """asyncio's own loop under the name of uvloop. asyncio is loaded when it is needed."""

    def __getattr__(self, name: str) -> Any:
        import asyncio

        if name.startswith("__"):
            raise AttributeError(name)
        return (lambda: None) if name == "install" else getattr(asyncio, {"Loop": "SelectorEventLoop"}.get(name, name))


class _ChangedModules(importlib.abc.MetaPathFinder):
    """Finds the modules that this network changes, and changes each as soon as it is loaded."""

    def __init__(self, changes: dict[str, Callable[[types.ModuleType], None]]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = self._changes.pop(fullname, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(fullname)
        assert spec is not None, "the package under test has this module"
        assert spec.loader is not None, "a module of a package has a loader"
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _quicken_sites(module: types.ModuleType) -> None:
    for name in ("set_delay", "learn_clock"):
        quicken(module.ActiveSites, name)
    plain = module.ActiveSites.__init__

    def begin(self: Any, store: Any, limits: Any, site_settings: Any, *arguments: Any, **options: Any) -> None:
        plain(self, store, limits, _QuickSettings(site_settings), *arguments, **options)

    module.ActiveSites.__init__ = begin


class _QuickSettings:
    """The settings of sites, with their delays divided by the pace."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self._pace = 1.0 if "kadcrawl_sim" in sys.modules else float(os.environ[PACE])

    def delay_s(self, site: str) -> float:
        return float(self._plain.delay_s(site)) / self._pace

    @property
    def delay_max_s(self) -> float:
        return float(self._plain.delay_max_s) / self._pace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def quicken(kind: Any, name: str) -> None:
    """Let a method have its `delay_s` divided by the pace."""
    plain = getattr(kind, name)
    signature = inspect.signature(plain)

    def quick(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        if "kadcrawl_sim" not in sys.modules:  # A simulation has a time of its own.
            bound.arguments["delay_s"] /= float(os.environ[PACE])
        return plain(*bound.args, **bound.kwargs)

    setattr(kind, name, quick)


def _replace_resolver(names: Mapping[str, str]) -> Callable[[types.ModuleType], None]:
    """Return the change of aiohttp's resolver, which asks name servers below Python."""

    def change(module: types.ModuleType) -> None:
        plain = module.AsyncResolver.resolve

        async def resolve(self: Any, host: str, *arguments: Any, **options: Any) -> Any:
            if host != "localhost" and host not in names:
                raise OSError(None, "DNS lookup failed")
            found = await plain(self, names.get(host, host), *arguments, **options)
            return [{**result, "hostname": host} for result in found]

        module.AsyncResolver.resolve = resolve

    return change
