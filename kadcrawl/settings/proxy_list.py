"""A proxy of a job: its URL, the lists that name it, and the form in which it may be shown.

The schemes are ``http://``, ``https://`` and ``socks5://``, with a user and a password if the proxy requires them.
``socks5h://`` means the same as ``socks5://``, as the proxy looks up names in both cases. `Proxy.url` contains the
password. People and logs see only `str(proxy)`, which has neither user nor password. For the same reason no error text
repeats a line.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require
from kadcrawl.settings.value_types import check_types

PROXIES_MAX = 1_000
"""Limit on the proxies of a job, and of one download of a list URL.

The proxies of a job travel whole to every joiner."""
PROXY_CHARS_MAX = 400
"""Limit on the characters of a proxy's URL."""
CREDENTIAL_CHARS_MAX = 100
"""Limit on the characters of a user and of a password. SOCKS has room for 255, but a job must fit one message."""
LIST_BYTES_MAX = 1024 * 1024
"""Limit on the size of a list. A thousand proxies take a tenth of that."""
POOLS_MAX = 20
"""Limit on the named pools of a job. Each peer verifies the proxies of all of them."""
DIRECT = "none"
"""Stands in a rule for no pool: its hosts are fetched directly."""
PORTS = {"http": 80, "https": 443, "socks5": 1080}
"""The default port of each scheme."""

_POOL_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")
_URL = re.compile(r"https?://[a-z0-9._:\[\]-]+/[!-~]*")
"""Pattern of every canonical URL (see urls.py)."""
_PROXY = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?/?"
)


@dataclass(frozen=True)
class Proxy:
    """One proxy. Different credentials make different proxies."""

    scheme: str
    host: str
    """Name in lower case, or an address. An IPv6 address has no brackets."""
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @cached_property
    def url(self) -> str:
        """The URL with credentials, which must never be shown."""
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user else ""
        return f"{self.scheme}://{credentials}{self._host_and_port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self._host_and_port}"

    def __repr__(self) -> str:
        return f"<Proxy {self}>"

    @property
    def _host_and_port(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def relays(self, url: str) -> bool:
        """Return whether the proxy makes the request for this canonical URL itself, without a tunnel to the site."""
        return self.scheme != "socks5" and url.startswith("http:")


def is_pool_name(text: str) -> bool:
    """Return whether a text can be the name of a pool, or `none`."""
    return _POOL_NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyPool:
    """Proxies with a name, for the rules of single sites. Raises ConfigError for a bad name or proxy."""

    name: str
    """Name of the pool, 1 to 50 small letters, digits and hyphens, by which a rule calls it in its `proxies`."""
    proxies: tuple[str, ...] = field(default=(), repr=False)
    """URLs of proxies, with their credentials."""
    proxies_from: str | None = field(default=None, repr=False)
    """Canonical URL of a list or a web page of proxies, in place of `proxies`. It may contain secrets."""

    def __post_init__(self) -> None:
        check_types(self)
        require(
            is_pool_name(self.name) and self.name != DIRECT,
            f"the name of a pool has 1 to 50 small letters, digits and hyphens, and is not none, not {self.name!r:.60}",
        )
        require(bool(self.proxies) or self.proxies_from is not None, f"pool {self.name} has no proxies")
        _check_list(self.proxies, self.proxies_from, f"pool {self.name}: ")


def parse(text: str) -> Proxy:
    """Return the proxy of a URL. Raises ConfigError, whose text does not repeat the URL."""
    found = _PROXY.fullmatch(text) if len(text) <= PROXY_CHARS_MAX else None
    if found is None:
        what = "" if "://" in text else " with its scheme in front"
        raise ConfigError(f"not the URL of a proxy{what}; one looks like http://user:password@203.0.113.7:3128")
    scheme = found["scheme"].lower().replace("socks5h", "socks5")
    if scheme not in PORTS:
        raise ConfigError(f"a proxy is one of {', '.join(f'{name}://' for name in PORTS)}, not {scheme}://")
    host = found["host"].lower()
    if host.startswith("["):
        try:
            host = str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            raise ConfigError("not an IPv6 address in the brackets") from None
    port = int(found["port"] or PORTS[scheme])
    if not 0 < port < 65_536:
        raise ConfigError("a port is from 1 to 65535")
    user, password = unquote(found["user"] or ""), unquote(found["password"] or "")
    for name, credential in (("user", user), ("password", password)):
        if not (credential.isascii() and (not credential or credential.isprintable())):
            raise ConfigError(f"the {name} of a proxy must be printable ASCII")
        if len(credential) > CREDENTIAL_CHARS_MAX:
            raise ConfigError(f"the {name} of a proxy has at most {CREDENTIAL_CHARS_MAX} characters")
    if ":" in user:
        raise ConfigError("the user of a proxy has no colon")
    if password and not user:
        raise ConfigError("a password of a proxy needs a user")
    proxy = Proxy(scheme, host, port, user, password)
    if len(proxy.url) > PROXY_CHARS_MAX:
        raise ConfigError(f"a proxy has at most {PROXY_CHARS_MAX} characters, once its credentials are escaped")
    return proxy


def check_proxies(
    proxies: Sequence[str], proxies_from: str | None, health_check_url: str, pools: Sequence[ProxyPool] = ()
) -> None:
    """Raise ConfigError unless these are the proxies of a job (`Job.proxies`, `proxies_from`, `proxy_judge`) and its
    pools."""
    _check_list(proxies, proxies_from)
    require(len(pools) <= POOLS_MAX, f"a job has at most {POOLS_MAX} pools")
    names = [pool.name for pool in pools]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"there are two pools with the name {twice}; give each its own")
    count = len(proxies) + sum(len(pool.proxies) for pool in pools)
    require(count <= PROXIES_MAX, f"a job has at most {PROXIES_MAX} proxies")
    require(
        not health_check_url or _URL.fullmatch(health_check_url) is not None,
        "proxy_judge must be a canonical URL, as urls.seed makes it",
    )
    require(
        bool(health_check_url) or not (proxies or proxies_from is not None or pools),
        "proxies need proxy_judge: the URL of a page that answers 200, by which each proxy is verified before it "
        "is used and every few minutes; a page of yours, or one meant for that, on a site this crawl leaves alone",
    )


def _check_list(proxies: Sequence[str], proxies_from: str | None, whose: str = "") -> None:
    """Raise ConfigError, without a URL in its text, unless these are proxies or a list of proxies."""
    require(not proxies or proxies_from is None, f"{whose}proxies and proxies_from cannot go together; use one of them")
    require(len(proxies) <= PROXIES_MAX, f"a job has at most {PROXIES_MAX} proxies")
    for number, url in enumerate(proxies, 1):
        try:
            require(len(url) <= 3 * PROXY_CHARS_MAX, "too long")
            parse(url)
        except ConfigError as error:
            raise ConfigError(f"{whose}proxy {number} of {len(proxies)}: {error}") from None
    require(
        not proxies_from or _URL.fullmatch(proxies_from) is not None,
        f"{whose}proxies_from must be a canonical URL, as urls.seed makes it",
    )


def lines(text: str) -> Iterator[tuple[int, Proxy | ConfigError]]:
    """Yield (line number, proxy or error) for each line of a list. Numbers begin at 1, and # begins a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        # A password may have a "#", as %23.
        if said := line.partition("#")[0].strip():
            try:
                yield number, parse(said)
            except ConfigError as error:
                yield number, error


def read_file(path: Path) -> tuple[str, ...]:
    """Return the URLs, with credentials, of a file with one proxy per line. Raises ConfigError with the line number."""
    try:
        with path.open("rb") as file:
            raw = file.read(LIST_BYTES_MAX + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read the proxies in {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8") from None
    if len(raw) > LIST_BYTES_MAX:
        raise ConfigError(f"{path} is too large for a list of proxies: at most {LIST_BYTES_MAX // 1024**2} MiB")
    found: dict[str, None] = {}
    for number, proxy in lines(text):
        if isinstance(proxy, ConfigError):
            raise ConfigError(f"{path}, line {number}: {proxy}")
        found[proxy.url] = None
    if not found:
        raise ConfigError(f"{path} names no proxies: one a line, such as http://203.0.113.7:3128")
    if len(found) > PROXIES_MAX:
        raise ConfigError(
            f"{path} names {len(found)} proxies, and a job has at most {PROXIES_MAX}, as it travels to every peer"
        )
    return tuple(found)


def shown(urls: Sequence[str], source: str | None) -> str:
    """Return a description of a job's proxies and their list URL, without secrets."""
    if source is not None:
        return f"from {'/'.join(source.split('/', 3)[:3])}"
    return f"{len(urls)} prox{'y' if len(urls) == 1 else 'ies'}" if urls else ""
