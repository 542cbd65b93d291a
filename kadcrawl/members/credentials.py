"""What one member shows and asks for: its own key and the swarm's, as TLS and datagrams need them.

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
    """One member's; its own key may be another once, before it has entered, and the swarm's changes now and then."""

    def __init__(
        self, keyring: Keyring, peer_key: PeerKey, directory: Path | None, now: Callable[[], float], first_number: int
    ) -> None:
        """`now` is the world's time in seconds since 1970; for `directory` and `first_number` see what they are for."""
        self.keyring = keyring
        self.peer_key = peer_key
        self.sealing = Sealing(peer_key, keyring.to_speak(now()), first_number)
        self._directory = directory
        self._now = now
        self._servers: dict[SwarmKey, ssl.SSLContext] = {}
        self._clients: dict[SwarmKey, ssl.SSLContext] = {}
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """What to listen by. It has no certificate: whoever dials names the swarm's key first."""
        self.server.minimum_version = ssl.TLSVersion.TLSv1_3
        # OpenSSL takes certificates and authorities from the context that the name stands for, but not this.
        self.server.verify_mode = ssl.CERT_REQUIRED
        self.server.sni_callback = self._named
        # Who resumes a session shows no certificate again, and names what key it likes.
        self.server.num_tickets = 0
        self._prepare()

    def use_peer_key(self, peer_key: PeerKey) -> None:
        """Be this one from now on."""
        self.peer_key = peer_key
        # It may be the same again, and no number of a key is used twice.
        self.sealing = Sealing(peer_key, self.keyring.to_speak(self._now()), self.sealing.number)
        self._servers.clear()
        self._clients.clear()
        self._prepare()

    def use_keyring(self, keyring: Keyring) -> None:
        """Go by these keys of the swarm; call it as well when half of the time for two of them is over."""
        self.keyring = keyring
        self.sealing.use_keys(keyring.to_speak(self._now()))
        self._prepare()

    @property
    def to_dial(self) -> list[tuple[SwarmKey, ssl.SSLContext]]:
        """The keys to dial by, the one to try first."""
        return [(key, self._clients[key]) for key in self.keyring.to_speak(self._now()) if key in self._clients]

    def is_good(self, context: ssl.SSLContext) -> bool:
        """Return whether what was answered by this context goes by a key that is good now."""
        return context in self._servers.values()

    def _prepare(self) -> None:
        """Make what dialling and answering need, and forget what is good no more."""
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
