"""The secrets of a directory: the key of its swarm, for an hour the former key, and the key of its peer.

A script that restarts a peer may go on giving it its first key, long after a change. So the names of replaced keys are
kept, and such a key counts as the key that replaced it. Each secret is a file that only its owner may read. A process
with a copy of the directory can be this peer.
"""

from pathlib import Path

from kadcrawl.errors import ConfigError, StartError
from kadcrawl.members.key_file import read_kept_key, read_secret, write_secret
from kadcrawl.members.keyring import Keyring
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.system.file_names import FORMER_KEY, PEER_KEY, SWARM_KEY

REPLACED_KEYS = "swarm.key.replaced"
"""The file of the names of replaced keys, the latest last."""
REPLACED_MAX = 100
"""Limit on the names of replaced keys that are kept, the latest."""
BEFORE_KEY = "swarm.key.before"
"""The file of the key that was here until the swarm was entered by another key.

Only a person reads it, who was wrong to say --rekeyed."""


class KeyStore:
    """The secrets of one directory, which its peer has to itself."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def is_empty(self) -> bool:
        """True if the peer of this directory was never in a swarm with a key."""
        return not any((self._directory / name).exists() for name in (SWARM_KEY, PEER_KEY))

    @property
    def swarm_key(self) -> SwarmKey | None:
        """The kept key of the swarm, or None. Raises ConfigError."""
        path = self._directory / SWARM_KEY
        return read_kept_key(path) if path.exists() else None

    def keyring(self, given: SwarmKey, now: float) -> Keyring:
        """Return the keys to use, `given` being the key of the swarm to enter. Raises StartError, ConfigError.

        Nothing is kept yet, as `given` may be the wrong key.
        """
        kept = self.swarm_key
        if kept is None or (given != kept and given.name not in self._replaced()):
            return Keyring(given)
        return self.kept(given if given == kept else kept, now)

    def kept(self, key: SwarmKey, now: float) -> Keyring:
        """Return the kept `key`, with the former one while that is good. Raises StartError, ConfigError."""
        former = self._directory / FORMER_KEY
        if not former.exists():
            return Keyring(key)
        said = read_secret(former).decode(errors="replace")
        try:
            text, until = said.split()
            former_key = SwarmKey.from_text(text, str(former))
            # The same, if a change was cut off between the two files: then there was none.
            return Keyring(key) if former_key == key else Keyring(key, former_key, float(until)).at(now)
        except ValueError:
            raise StartError(
                f"{former} is damaged: delete it, and the swarm's former key is accepted no more"
            ) from None

    def keep(self, keyring: Keyring) -> None:
        """Keep these keys of the swarm. Raises StartError."""
        former, kept = self._directory / FORMER_KEY, self.swarm_key
        if keyring.former is not None:
            self._replace(keyring.former, keyring.key)
            write_secret(former, f"{keyring.former.text}\n{keyring.until:.0f}\n".encode())
        elif kept is not None and kept != keyring.key:
            self._replace(kept, keyring.key)
            write_secret(self._directory / BEFORE_KEY, f"{kept.text}\n".encode())
        write_secret(self._directory / SWARM_KEY, f"{keyring.key.text}\n".encode())
        if keyring.former is None:
            former.unlink(missing_ok=True)

    def _replace(self, former: SwarmKey, key: SwarmKey) -> None:
        names = [name for name in self._replaced() if name not in (key.name, former.name)]
        names = [*names, former.name][-REPLACED_MAX:]
        write_secret(self._directory / REPLACED_KEYS, "\n".join([*names, ""]).encode())

    def _replaced(self) -> list[str]:
        """Return the names of the keys that were replaced in this directory. Raises ConfigError."""
        path = self._directory / REPLACED_KEYS
        return read_secret(path).decode(errors="replace").split() if path.exists() else []

    def peer_key(self) -> PeerKey | None:
        """Return the peer's own key, if it has one yet. Raises ConfigError."""
        path = self._directory / PEER_KEY
        if not path.exists():
            return None
        secret = read_secret(path)
        try:
            return PeerKey(bytes.fromhex(secret.decode()))
        except ValueError:  # A ConfigError is one, too.
            raise ConfigError(
                f"{path} is damaged: delete it, and this directory gets a new peer, of another ID"
            ) from None

    def keep_peer_key(self, peer_key: PeerKey) -> None:
        """Keep the peer's own key for ever. Raises StartError."""
        write_secret(self._directory / PEER_KEY, f"{peer_key.seed.hex()}\n".encode())
