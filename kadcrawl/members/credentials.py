"""The credentials of one member: its own key and the swarm's keys, as TLS and datagrams need them.

Tests: tests/link/test_certificates.py, tests/peer/test_members.py
"""

import ssl
from collections.abc import Callable
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
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """The TLS context for listening. It has no certificate, as the dialer names the swarm's key first."""
        self.server.minimum_version = ssl.TLSVersion.TLSv1_3
        # OpenSSL takes certificates and authorities from the context of the server name, but not this mode.
        self.server.verify_mode = ssl.CERT_REQUIRED
        self.server.sni_callback = self._named
        # A resumed session would show no certificate, and could name any key.
        self.server.num_tickets = 0
        self._prepare()

    def use_peer_key(self, peer_key: PeerKey) -> None:
        """Use this key of the peer from now on."""
        self.peer_key = peer_key
        # The key may be the same as before, and no number of a key may be used twice.
        self.sealing = Sealing(peer_key, self.keyring.to_speak(self._now()), self.sealing.number)
        self._servers.clear()
        self._clients.clear()
        self._prepare()

    def use_keyring(self, keyring: Keyring) -> None:
        """Use these keys of the swarm. Call it again when half of the overlap of two keys has passed."""
        self.keyring = keyring
        self.sealing.use_keys(keyring.to_speak(self._now()))
        self._prepare()

    @property
    def to_dial(self) -> list[tuple[SwarmKey, ssl.SSLContext]]:
        """The swarm keys to dial by, the first to try first, with their TLS contexts."""
        return [(key, self._clients[key]) for key in self.keyring.to_speak(self._now()) if key in self._clients]

    def is_good(self, context: ssl.SSLContext) -> bool:
        """Return whether `context`, which answered a connection, belongs to a key that is valid now."""
        return context in self._servers.values()

    def _prepare(self) -> None:
        """Make the TLS contexts of valid keys, and forget those of other keys."""
        keys = self.keyring.keys
        for contexts, make in ((self._servers, server_context), (self._clients, client_context)):
            for key in [*contexts]:
                if key not in keys:
                    del contexts[key]
            for key in keys:
                if key not in contexts:
                    contexts[key] = make(key, self.peer_key, self._directory)

    def _named(self, tls: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        for key, context in self._servers.items():
            if key.name == name:
                tls.context = context
                return None
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
