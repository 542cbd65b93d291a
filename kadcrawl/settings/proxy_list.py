"""A proxy as a word: what a line of a list says, and how it may be shown.

``http://``, ``https://`` and ``socks5://`` (or ``socks5h://``, which is the same here: names are looked up by the
proxy), with a user and a password if it asks for them. `Proxy.url` holds the password; everything a person or a log
sees is `str(proxy)`, which has neither user nor password. No text of an error here repeats a line, for the same reason.
"""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote

from kadcrawl.errors import ConfigError

PROXIES_MAX = 1_000
"""Of one job, or of one answer of a source: the first travel whole to every joiner."""
PROXY_CHARS_MAX = 400
CREDENTIAL_CHARS_MAX = 100
"""Of a user and of a password: SOCKS has room for 255, and a job is to fit one message."""
LIST_BYTES_MAX = 1024 * 1024
"""Of a file or of what a source answers; a thousand proxies take a tenth of that."""
PORTS = {"http": 80, "https": 443, "socks5": 1080}
"""Schemes, and the port each has if none is named."""

_PROXY = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?/?"
)


@dataclass(frozen=True)
class Proxy:
    """One proxy. Two with other credentials are two."""

    scheme: str
    host: str
    """A name in lower case, or an address; of IPv6 without brackets."""
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @cached_property
    def url(self) -> str:
        """With credentials: never to be shown."""
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user else ""
        return f"{self.scheme}://{credentials}{self._place}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self._place}"

    def __repr__(self) -> str:
        return f"<Proxy {self}>"

    @property
    def _place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def relays(self, url: str) -> bool:
        """Say whether it makes the request for this canonical URL itself, and opens no tunnel to the site."""
        return self.scheme != "socks5" and url.startswith("http:")


def parse(text: str) -> Proxy:
    """Return the proxy of this URL. Raises ConfigError, which says what is wrong and not what was there."""
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


def lines(text: str) -> Iterator[tuple[int, Proxy | ConfigError]]:
    """Yield the number, from 1, and the proxy of each line of a list, or what is wrong with it; # begins a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        # A password may have a "#", as %23.
        if said := line.partition("#")[0].strip():
            try:
                yield number, parse(said)
            except ConfigError as error:
                yield number, error


def read_file(path: Path) -> tuple[str, ...]:
    """Return the URLs, credentials and all, of a file with a proxy in each line. Raises ConfigError naming the line."""
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
    """Return what a person is told of a job's proxies and of where they are from: nothing secret."""
    if source is not None:
        return f"from {'/'.join(source.split('/', 3)[:3])}"
    return f"{len(urls)} prox{'y' if len(urls) == 1 else 'ies'}" if urls else ""
