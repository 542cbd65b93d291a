"""A peer that dies as a killed process does, within the process of its test."""

from typing import NoReturn

from kadcrawl import Peer, RemoteError


async def crash(peer: Peer) -> None:
    """Kill a peer: from the first step on it says, answers, asks and writes nothing more; on return it is closed.

    What it had not committed is forgotten, and its directory may be used again.
    """

    async def forget() -> None:
        pass

    async def unreachable(*_: object) -> NoReturn:
        raise RemoteError("nobody", "this peer is dead")

    # Before the first await, so that it is one instant.
    peer.store.journal.commit = forget  # type: ignore[method-assign]
    peer.client.ask = unreachable  # type: ignore[method-assign, assignment]
    peer.components.crawler.hooks.may_start = lambda: False
    assert peer.overlay._protocol is not None
    assert peer.overlay._protocol.transport is not None
    peer.overlay._protocol.transport.abort()
    server, listening = peer.server._server, peer.server._listening
    assert server is not None
    if listening is not None:
        listening.close()
    for connection in server.connections:
        connection.force_close()
    for task in (*peer._tasks, peer._committer, *peer.overlay._tasks):
        task.cancel()
    await peer.__aexit__(None, None, None)
