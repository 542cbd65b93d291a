"""The keys and certificates of one peer, and the change to another key of the swarm.

`KeyRotation` makes the peer's credentials from the secrets of its directory (key_store.py). A changed key is good at
once, and the former key stays good for an hour (members/keyring.py).

Tests: tests/peer/test_members.py
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from kadcrawl.errors import StartError
from kadcrawl.members.credentials import Credentials
from kadcrawl.members.keyring import OVERLAP_S
from kadcrawl.members.peer_key import PeerKey
from kadcrawl.members.sealing import NUMBERS_PER_SECOND
from kadcrawl.members.swarm_key import SwarmKey
from kadcrawl.peer.membership.key_store import KeyStore
from kadcrawl.settings.config import Config
from kadcrawl.store.store import Store
from kadcrawl.system.clock import Clock
from kadcrawl.system.event import Event
from kadcrawl.system.file_names import SWARM_KEY

RUNS_MAX = 2**32 - 1
"""The end of run numbers, which are seconds since 1970. Below it, message numbers fit in 64 bits."""

ANSWER_S = 1.0
"""Seconds for the answer to the person who changed the key, before connections of the former key end."""

log = logging.getLogger(__name__)


class KeyRotation:
    """The keys of one peer."""

    def __init__(self, config: Config, store: Store, clock: Clock) -> None:
        """Read the secrets of the directory. Raises StartError and ConfigError if they are unusable."""
        assert config.swarm_key is not None, "without a key anybody is let in"
        self._key_store = KeyStore(config.data)
        self._store = store
        self._clock = clock
        self._data = config.data
        now = clock.now()
        keyring = self._key_store.keyring(config.swarm_key, now)
        self._given = config.swarm_key
        kept = self._key_store.peer_key()
        self.is_known = kept is not None
        """True if the peer's own key is that of an earlier run, and final. Otherwise it is only drawn."""
        swarm_key = self._key_store.swarm_key
        self._has_swarm_key = swarm_key is not None
        self._of = store.meta.read("swarm_key", bytes.decode) if swarm_key is None else swarm_key.name
        """The name of the key of this directory's swarm. The journal has it too, in case the file is gone."""
        # No number is used twice, whatever the clock says: `run` must be on disk before the first is.
        run = max(int(now), (store.meta.read("run", _run) or 0) + 1)
        if run >= RUNS_MAX:  # Once journaled it would be taken for damage, with the clock set right as well.
            raise StartError("this machine's clock says that it is after 2105: set it right")
        store.meta.set("run", str(run).encode())
        first = int(max(now, float(run)) * NUMBERS_PER_SECOND)
        self.credentials = Credentials(keyring, kept or PeerKey.generate(), config.data, clock.now, first)
        self._changed = Event()
        self._on_changed: list[Callable[[], None]] = []
        self._on_former_ended: list[Callable[[], None]] = []

    @property
    def is_newcomer(self) -> bool:
        """True if the directory belongs to a swarm whose key differs from the given key."""
        return self._of is not None and self._of != self.credentials.keyring.key.name

    def subscribe(
        self, *, changed: Iterable[Callable[[], None]] = (), former_ended: Iterable[Callable[[], None]] = ()
    ) -> None:
        """Call `changed` when other keys are good, and `former_ended` when connections of the former key must end."""
        self._on_changed += changed
        self._on_former_ended += former_ended

    def refuse_newcomer(self) -> None:
        """Raise StartError if the peer `is_newcomer`, as it may not begin alone in such a directory."""
        if self.is_newcomer:
            told = self.credentials.keyring.key.description
            if self._has_swarm_key:
                raise StartError(
                    f"{self._data} is of a swarm with another key, and nobody it knew lets it in by {told}: leave that "
                    "out to go on by the directory's own, or choose another directory (--data)"
                )
            raise StartError(
                f"{self._data} is of a swarm with another key than {told}, and its own is not there any more: copy "
                f"{SWARM_KEY} from another peer of that swarm, or choose another directory (--data)"
            )

    def keep(self) -> None:
        """Keep the key of the swarm that was entered or begun, and the peer's own key. Raises StartError."""
        key = self.credentials.keyring.key
        if self._given != key:
            log.warning("swarm.key_replaced given=%s used=%s", self._given.name, key.name)
        if self._key_store.swarm_key != key:
            self._key_store.keep(self.credentials.keyring)
        # After it: a peer's key alone means that the swarm's was there and is gone.
        if self._key_store.peer_key() is None:
            self._key_store.keep_peer_key(self.credentials.peer_key)
        self._note(key)

    def _note(self, key: SwarmKey) -> None:
        self._of = key.name
        self._store.meta.set("swarm_key", key.name.encode())

    def settle(self, peer_key: PeerKey) -> None:
        """Use this key as the peer's own, which is final once the swarm was entered."""
        self.is_known = True
        self.credentials.use_peer_key(peer_key)

    def change(self, key: SwarmKey) -> None:
        """Accept this key of the swarm, and for an hour the former key. Raises StartError.

        The hour of an older former key ends at once, unless that key is this one.
        """
        keyring = self.credentials.keyring.at(self._clock.now())
        changed = keyring.changed(key, self._clock.now())
        if changed is not keyring:
            self._key_store.keep(changed)
            self._note(key)
            self.credentials.use_keyring(changed)
            log.warning("swarm.key_changed to=%s former_until=%.0f", key.name, changed.until)
            for listener in self._on_changed:
                listener()
            self._changed.set()
            if keyring.former not in (None, key):  # It is good no more, and what was made by it is to end as well.
                asyncio.get_running_loop().call_later(ANSWER_S, self._end_former)

    def _end_former(self) -> None:
        for listener in self._on_former_ended:
            listener()

    async def run(self) -> None:
        """Turn from the former key to the new key on time, until cancelled."""
        while True:
            keyring = self.credentials.keyring
            self._changed.clear()
            now = self._clock.now()
            turns = [] if keyring.former is None else [keyring.until - OVERLAP_S / 2, keyring.until]
            left = [turn - now for turn in turns if turn > now]
            if keyring.former is not None and not left:
                keyring = keyring.at(now)
                self.credentials.use_keyring(keyring)
                log.warning("swarm.former_key_ended")
                try:
                    self._key_store.keep(keyring)
                except StartError as error:  # A full disk, say. What is there names the time that is over by now.
                    log.warning("swarm.former_key_kept why=%s", error)
                for listener in self._on_changed:
                    listener()
                self._end_former()
                continue
            try:
                async with asyncio.timeout(min(left) if left else None):
                    await self._changed.wait()
            except TimeoutError:
                self.credentials.use_keyring(keyring)


def _run(journaled: bytes) -> int:
    run = int(journaled)
    if not 0 <= run < RUNS_MAX:
        raise ValueError("no second")
    return run


def key_rotation(config: Config, store: Store, clock: Clock) -> KeyRotation | None:
    """Return the keys of this peer, or None if its swarm has no key. Raises StartError, ConfigError."""
    if config.swarm_key is not None:
        return KeyRotation(config, store, clock)
    if not KeyStore(config.data).is_empty:
        raise StartError(
            f"the swarm of {config.data} has a key, in {config.data / SWARM_KEY}: give it, without --insecure, or "
            "choose another directory with --data"
        )
    return None
