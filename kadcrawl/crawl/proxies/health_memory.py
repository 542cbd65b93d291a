"""`HealthMemory`: the health of a pool's proxies in the journal of the peer, which a restart goes on with.

The journal names a proxy by a fingerprint, whose key is a random value of this journal. So the rows show no password,
and those of two peers cannot be compared.
"""

from collections.abc import Iterable
from hashlib import blake2b
from random import Random

from kadcrawl.settings.proxy_list import Proxy
from kadcrawl.store.meta_table import MetaTable
from kadcrawl.store.proxy_health_table import ProxyHealthTable, SavedHealth

KEY_BYTES = 32
"""Length of the key of the fingerprints."""
FINGERPRINT_BYTES = 16


def fingerprint_key(meta: MetaTable, random: Random) -> bytes:
    """Return the key of this journal's fingerprints, made when it is first needed."""
    key = meta.get("proxy_key")
    if key is None or len(key) != KEY_BYTES:
        key = random.randbytes(KEY_BYTES)
        meta.set("proxy_key", key)
    return key


class HealthMemory:
    """The journaled health of the proxies of one pool."""

    def __init__(self, pool: str, table: ProxyHealthTable, key: bytes) -> None:
        """`pool` is the name of the pool, empty for the proxies of the job itself."""
        self._pool = pool
        self._table = table
        self._key = key

    def recall(self, proxy: Proxy) -> SavedHealth | None:
        """Return the health that an earlier run journaled, or None."""
        return self._table.get(self._pool, self._fingerprint(proxy))

    def keep(self, proxy: Proxy, health: SavedHealth) -> None:
        """Journal the health of a proxy."""
        self._table.put(self._pool, self._fingerprint(proxy), health)

    def keep_only(self, proxies: Iterable[Proxy]) -> None:
        """Forget all other proxies."""
        self._table.keep_only(self._pool, {self._fingerprint(proxy) for proxy in proxies})

    def _fingerprint(self, proxy: Proxy) -> bytes:
        return blake2b(proxy.url.encode(), key=self._key, digest_size=FINGERPRINT_BYTES).digest()
