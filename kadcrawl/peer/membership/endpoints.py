"""A peer's two network ends, on one port: the link on TCP and the overlay on UDP; and where others find them."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec

from kadcrawl.errors import RemoteError, StartError, UnansweredError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.client_connection import NO_ANSWER, UNREACHED_PREFIX, is_hung_up
from kadcrawl.link.wire.joining_messages import STARTING
from kadcrawl.link.wire.messages import WIRE_VERSION, Contact, Hello, Welcome
from kadcrawl.peer.membership.node_id import Identity
from kadcrawl.peer.resources import Resources
from kadcrawl.settings.config import Config
from kadcrawl.store.store import Store
from kadcrawl.system.file_names import ADDRESS

if TYPE_CHECKING:  # A leaf does without the rooms of a full peer.
    from kadcrawl.link.server import LinkServer
    from kadcrawl.overlay import Overlay

HELLO_DEADLINE_S = 5.0
HELLO_TRIES = 3
"""Tries of a newcomer. A connection whose packets were lost several times may take longer than one."""
AWAY = (UNREACHED_PREFIX, NO_ANSWER)
"""The first words of an error if nobody is there."""
PORTS_TRIED = 20
"""Tries for a port that is free for both TCP and UDP, when the system chooses it."""

ELSEWHERE = {4: ("192.0.2.1", 9), 6: ("2001:db8::1", 9)}
"""IP version -> an address of the documentation range. Asking the system for the route there sends nothing."""
LOOPBACK = {4: "127.0.0.1", 6: "::1"}
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


async def reachable_host(host: str, towards: tuple[str, int] | None = None) -> str:
    """Return the address at which peers at `towards` (host, port) reach a peer that listens on `host`.

    That is `host`, unless it stands for all addresses of the machine: then the one packets to `towards` leave from,
    of the IP version of `host`, as only that is served. None stands for anywhere. Raises StartError if that is good on
    one network interface only.
    """
    listening = ipaddress.ip_address(host)
    if not listening.is_unspecified:
        return host
    version = listening.version
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=towards or ELSEWHERE[version], family=FAMILY[version]
        )
    except OSError:
        return LOOPBACK[version]
    found: str = transport.get_extra_info("sockname")[0]
    transport.close()
    if "%" in found:
        raise StartError(
            f"packets to {towards[0] if towards else 'others'} leave from {found}, which no other peer can be told of: "
            "name it by another address, or choose one with --listen"
        )
    return found


def keep_to_loopback(host: str) -> None:
    """Raise StartError unless `host`, to listen on, is reached from this machine only."""
    if not ipaddress.ip_address(host).is_loopback:
        raise StartError(
            f"a swarm without a key lets anybody in who can reach {host}, so it listens on loopback only: "
            "give it a key (kadcrawl keygen), or --listen 127.0.0.1:PORT"
        )


async def open_ends(
    resources: Resources,
    identity: Identity,
    cell_bits: int,
    register: "Callable[[LinkServer], None]",
    on_heartbeat: Callable[[Contact, int, int], None],
    stack: AsyncExitStack,
) -> "tuple[LinkServer, Overlay]":
    """Return the listening server and overlay of a peer. `stack` closes them, and `register` adds the handlers.

    An overlay whose ID is only drawn answers nothing yet. Raises StartError.
    """
    from kadcrawl.link.server import LinkServer
    from kadcrawl.overlay.overlay import Overlay

    config, links = resources.config, resources.environment.process_links

    def make_server() -> "LinkServer":
        server = LinkServer(config.limits.message_bytes_max, resources.credentials, resources.peer_score, links)
        register(server)
        return server

    def make_overlay() -> "Overlay":
        return Overlay(
            identity.node_id,
            resources.random,
            cell_bits=cell_bits,
            settings=resources.environment.overlay,
            credentials=resources.credentials,
            peer_score=resources.peer_score,
            on_heartbeat=on_heartbeat,
            process_links=links,
        )

    if resources.credentials is None and not resources.environment.trusted_network:
        keep_to_loopback(config.host)
    server, overlay = await listen(config, resources.store, make_server, make_overlay)
    stack.push_async_callback(overlay.close)
    stack.push_async_callback(server.close)
    if not identity.settled:
        overlay.withhold_answers()
    return server, overlay


async def listen(
    config: Config, store: Store, make_server: "Callable[[], LinkServer]", make_overlay: "Callable[[], Overlay]"
) -> "tuple[LinkServer, Overlay]":
    """Return a server and an overlay that listen on the same port of `config.host`. Raises StartError.

    If the system may choose the port, the journaled one comes first: a peer that comes back is found where it was.
    """
    journaled = store.meta.read("port", int) or 0
    ports = [config.port] if config.port else [journaled, *[0] * PORTS_TRIED]
    for port in ports:
        server, overlay = make_server(), make_overlay()
        try:
            bound = await server.listen(config.host, port)
        except (OSError, OverflowError) as error:
            if port and not config.port:
                continue
            raise StartError(_cannot_listen(config.host, port, error)) from None
        try:
            await overlay.listen(config.host, bound)
        except OSError as error:
            await server.close()
            if config.port:
                raise StartError(_cannot_listen(config.host, port, error)) from None
        except BaseException:
            await server.close()
            raise
        else:
            store.meta.set("host", msgspec.json.encode(config.host))
            store.meta.set("port", str(bound).encode())
            _write_address(config, overlay.me.address)
            return server, overlay
    raise StartError(f"no port is free for both TCP and UDP on {config.host}")


async def hello(client: LinkClient, bootstrap: Sequence[tuple[str, int]]) -> Welcome:
    """Return the swarm's description by the first of these peers (host, port) to answer.

    Raises UnansweredError if no peer is there or has begun yet, and StartError if a peer is there and refuses.
    """
    reasons: dict[tuple[str, int], str] = {}
    for _ in range(HELLO_TRIES):
        for address in bootstrap:
            try:
                return await client.ask(address, Hello(WIRE_VERSION), Welcome, HELLO_DEADLINE_S)
            except RemoteError as error:
                reasons[address] = error.why
    said = "; ".join(f"peer {address[0]}:{address[1]}: {why}" for address, why in reasons.items())
    text = f"cannot join: {said}{_hint(client, reasons.values())}"
    raise UnansweredError(text) if _may_answer_soon(client, reasons.values()) else StartError(text)


def _may_answer_soon(client: LinkClient, reasons: Iterable[str]) -> bool:
    """Return whether each of these peers is away, or is starting or ending."""
    # A peer that takes another ID, or ends, hangs up. So does a peer with a key to this peer without a key, for ever.
    return all(why.startswith((*AWAY, STARTING)) or (client.has_key and is_hung_up(why)) for why in reasons)


def _nobody_is_there(reasons: Iterable[str]) -> bool:
    return all(why.startswith(AWAY) for why in reasons)


def _hint(client: LinkClient, reasons: Collection[str]) -> str:
    """Return a hint for the person whose peer could not join for these reasons."""
    if not client.has_key and any(is_hung_up(why) for why in reasons):
        return ". If its swarm has a key, give it: --key-file FILE"
    if _nobody_is_there(reasons):
        return ". Is a peer running there?"
    return ""


def _write_address(config: Config, address: tuple[str, int]) -> None:
    """Say in the directory where the peer listens, for commands on this machine."""
    host, port = address
    if ipaddress.ip_address(host).is_unspecified:
        host = LOOPBACK[ipaddress.ip_address(host).version]
    try:
        (config.data / ADDRESS).write_text(f"[{host}]:{port}\n" if ":" in host else f"{host}:{port}\n")
    except OSError:
        pass  # They can be told by --peer.


def _cannot_listen(host: str, port: int, error: Exception) -> str:
    return f"cannot listen on {host}:{port}: {error}; choose another address with --listen HOST:PORT"
