"""The credentials of one member: its own key and the swarm's keys, as TLS and datagrams need them.

Tests: tests/members/test_certificates.py, tests/peer/test_members.py
"""

import ssl
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from kadcrawl.members.certificates import client_context, server_context
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.sealing import Sealing
from kadcrawl.members.swarm_key import SwarmKey


class Credentials:
    """The credentials of one peer. Its own key may change once, before it has entered; the swarm's keys change at
    times.
    """

    def __init__(
        self, keyring: Keyring, peer_key: PeerKey, directory: Path | None, now: Callable[[], float], first_number: int
    ) -> None:
        """The clock `now` is wall-clock time in seconds since 1970.

        For `directory` see `certificates.server_context`, for `first_number` see `Sealing`.
        """
        self.keyring = keyring
        self.peer_key = peer_key
        self.sealing = Sealing(peer_key, keyring.to_speak(now()), first_number)
        self._directory = directory
        self._now = now
        self._servers: dict[SwarmKey, ssl.SSLContext] = {}
        self._clients: dict[SwarmKey, ssl.SSLContext] = {}

    @cached_property
    def server(self) -> ssl.SSLContext:
        """The TLS context for listening. It has no certificate, as the dialer names the swarm's key first."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # OpenSSL takes certificates and authorities from the context of the server name, but not this mode.
        context.verify_mode = ssl.CERT_REQUIRED
        context.sni_callback = self._named
        context.num_tickets = 0  # A resumed session would show no certificate, and could name any key.
        return context

    def use_peer_key(self, peer_key: PeerKey) -> None:
        """Use this key of the peer from now on. Connections by another key are not good any more."""
        if peer_key is self.peer_key:
            return  # The connections made while the key was only drawn stay good.
        self.peer_key = peer_key
        # The private half may be the same as before, and no number of a key may be used twice.
        self.sealing = Sealing(peer_key, self.keyring.to_speak(self._now()), self.sealing.number)
        self._servers.clear()
        self._clients.clear()

    def use_keyring(self, keyring: Keyring) -> None:
        """Use these keys of the swarm. Call it again when half of the overlap of two keys has passed."""
        self.keyring = keyring
        self.sealing.use_keys(keyring.to_speak(self._now()))
        for contexts in (self._servers, self._clients):
            for key in [*contexts]:
                if key not in keyring.keys:
                    del contexts[key]

    @property
    def to_dial(self) -> list[tuple[SwarmKey, ssl.SSLContext]]:
        """The swarm keys to dial by, the first to try first, with their TLS contexts."""
        keys, clients = self.keyring.to_speak(self._now()), self._clients
        for key in keys:
            if key not in clients:  # Made when first used: a context takes memory, and some peers dial nobody.
                clients[key] = client_context(key, self.peer_key, self._directory)
        return [(key, clients[key]) for key in keys]

    def is_let_in_by(self, other: "Credentials") -> bool:
        """Return whether a peer with the credentials `other` accepts a key that this peer sends by."""
        return any(key in other.keyring.keys for key in self.keyring.to_speak(self._now()))

    def server_context(self, key: SwarmKey) -> ssl.SSLContext:
        """Return the TLS context that answers a dialer of this swarm key."""
        if key not in self._servers:
            self._servers[key] = server_context(key, self.peer_key, self._directory)
        return self._servers[key]

    def is_good(self, context: ssl.SSLContext) -> bool:
        """Return whether `context`, which answered a connection, belongs to a key that is valid now."""
        return context in self._servers.values()

    def _named(self, tls: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        for key in self.keyring.keys:
            if key.name == name:
                tls.context = self.server_context(key)
                return None
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
