"""The bounds and headers of a request, by the site rule for its URL. A decision: no I/O, no clock.

A site rule lowers the limits of the machine and never raises them, as the memory of a machine is its owner's to give.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import aiohttp
from yarl import URL

from kadcrawl.crawl.fetch.content_encoding import ACCEPT_ENCODING
from kadcrawl.crawl.fetch.tls import tls_of
from kadcrawl.settings.limits import Limits
from kadcrawl.settings.proxy_list import Proxy
from kadcrawl.settings.request_headers import pairs
from kadcrawl.settings.secrets import Secrets
from kadcrawl.settings.site_auth import auth_header, parse_auth
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings

NO_SECRETS: Final = Secrets()
ACCEPT: Final = "text/html,application/xhtml+xml,*/*;q=0.8"


@dataclass(frozen=True, slots=True)
class RequestRule:
    """The bounds and headers of the requests to some hosts."""

    limits: Limits
    headers: tuple[tuple[str, str], ...]
    header_lines: str
    """The headers as they are sent and stored."""
    secret_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Headers that are sent, but stored nowhere."""
    tls: ssl.SSLContext | bool = True
    """Settings of TLS, or True for the usual settings."""

    @classmethod
    def of(cls, limits: Limits, user_agent: str, own: Sequence[tuple[str, str]] = ()) -> "RequestRule":
        """Return a rule with the headers of every request and `own` headers, of which one may replace the Accept."""
        headers = {"User-Agent": user_agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
        if any(name.lower() == "accept" for name, _ in own):
            del headers["Accept"]
        every = (*headers.items(), *own)
        return cls(limits, every, "".join(f"{name}: {value}\r\n" for name, value in every))


class RequestRules:
    """The bounds and headers of all requests of one peer."""

    def __init__(
        self,
        limits: Limits,
        user_agent: str,
        site_settings: SiteSettings | None = None,
        secrets: Mapping[str, str] = NO_SECRETS,
    ) -> None:
        """`limits` and `secrets` are those of the machine. `user_agent` is that of kadcrawl itself, without a contact.

        Without `site_settings` they hold for every URL. Raises ConfigError for a secret that does not fit its use.
        """
        self._secrets = secrets
        self._limits = limits
        self._user_agent = user_agent
        self._site_settings = site_settings
        self._plain = RequestRule.of(limits, user_agent) if site_settings is None else self._made(site_settings, None)
        self._by_site_rule: dict[int, RequestRule] = {}
        """The rules made so far, by the identity of their site rule, which lives as long as the job."""

    def of(self, url: str) -> RequestRule:
        """Return the rule for the request of a canonical URL."""
        settings = self._site_settings
        site_rule = settings.rule(url) if settings is not None else None
        if site_rule is None or settings is None:
            return self._plain
        made = self._by_site_rule.get(id(site_rule))
        if made is None:
            made = self._by_site_rule[id(site_rule)] = self._made(settings, site_rule)
        if made.secret_headers and not settings.sends_secrets(url):
            return replace(made, secret_headers=())
        return made

    def _made(self, settings: SiteSettings, rule: SiteRule | None) -> RequestRule:
        limits = self._limits
        if rule is not None:
            limits = replace(
                limits,
                body_bytes_max=min(limits.body_bytes_max, rule.body_bytes_max or limits.body_bytes_max),
                fetch_timeout_s=min(limits.fetch_timeout_s, rule.fetch_timeout_s or limits.fetch_timeout_s),
            )
        made = RequestRule.of(limits, settings.user_agent(rule, self._user_agent), pairs(settings.headers(rule)))
        made = replace(made, tls=tls_of(rule, settings.authorities, self._secrets))
        if rule is None or not rule.auth:
            return made
        auth = parse_auth(rule.auth)
        return replace(made, secret_headers=(auth_header(auth, self._secrets[auth.secret]),))


class Way(NamedTuple):
    """How a request is sent: over this session, through this proxy, and as a POST if it has a form."""

    session: aiohttp.ClientSession
    proxy: Proxy | None
    form: bytes

    @property
    def method(self) -> str:
        return "POST" if self.form else "GET"

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """The headers of a form."""
        return (("Content-Type", "application/x-www-form-urlencoded"),) if self.form else ()

    @property
    def proxy_url(self) -> str | None:
        """The URL of the proxy with its credentials, which must not be shown."""
        return None if self.proxy is None else self.proxy.url


def request_head(url: URL, rule: RequestRule, extra_headers: Sequence[tuple[str, str]]) -> bytes:
    """Return the head of the request as it is stored: as it is sent, but for secrets."""
    extra = "".join([f"{name}: {value}\r\n" for name, value in extra_headers if name != "Cookie"])
    first = f"GET {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
    return f"{first}{rule.header_lines}{extra}\r\n".encode()
