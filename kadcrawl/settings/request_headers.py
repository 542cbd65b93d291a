"""The headers that a job or a site rule adds to its requests, and the name by which a crawl calls itself.

A header is a text ``Name: value``. Headers that the protocol or kadcrawl itself decides are refused, and so are those
that carry secrets, as a job travels to every member. The robots token is the name by which a robots.txt speaks to the
crawl (RFC 9309 2.2.1). It must be part of each User-Agent, so that the owner of a site knows which group to write.
"""

import re
from collections.abc import Sequence

from kadcrawl.errors import ConfigError
from kadcrawl.settings.limits import require

HEADERS_MAX = 30
"""Limit on the headers of a job, and of a site rule."""
HEADER_CHARS_MAX = 1_000
"""Limit on the characters of one header, and of a User-Agent."""
TOKEN_DEFAULT = "kadcrawl"
"""The robots token, and the start of the User-Agent, of a crawl that names no other."""
BROWSER = "mozilla"
"""The first product of the User-Agents of browsers, and of crawlers that look like them: no name of a crawler."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_TOKEN = re.compile(r"[A-Za-z_-]{1,100}")
_FIRST_PRODUCT = re.compile(r"[A-Za-z_-]+")
_FRAMING = frozenset(
    [
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_OURS = {
    "accept-encoding": "kadcrawl decodes what it asks for",
    "range": "pages are fetched whole",
    "user-agent": "use user-agent",
    "authorization": "use auth of a [[sites]] table, which keeps secrets",
    "cookie": "use cookies of a [[sites]] table",
}


def normal_header(text: str) -> str:
    """Return a header ``Name: value`` with one space. Raises ConfigError for a header that may not be set."""
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    require(bool(colon) and len(text) <= HEADER_CHARS_MAX, f"{text!r:.60} is no header, such as 'Accept-Language: de'")
    require(_NAME.fullmatch(name) is not None, f"header {name!r:.60} has no name that HTTP allows")
    require(
        value.isascii() and value.isprintable() and bool(value),
        f"the value of header {name} must be printable ASCII, and not empty",
    )
    key = name.lower()
    require(
        key not in _FRAMING and not key.startswith("proxy-"), f"header {name} cannot be set, as HTTP itself decides it"
    )
    require(
        not key.startswith("if-"), f"header {name} cannot be set, as it makes a request conditional; use recrawl-after"
    )
    if key in _OURS:
        raise ConfigError(f"header {name} cannot be set: {_OURS[key]}")
    return f"{name}: {value}"


def check_headers(headers: Sequence[str]) -> None:
    """Raise ConfigError unless these are headers as `normal_header` returns them, each name once."""
    require(len(headers) <= HEADERS_MAX, f"there can be at most {HEADERS_MAX} headers")
    for header in headers:
        require(normal_header(header) == header, f"header {header!r:.60} must have one space after its colon")
    names = [header.partition(":")[0].lower() for header in headers]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"header {twice} is given twice")


def pairs(headers: Sequence[str]) -> list[tuple[str, str]]:
    """Return the (name, value) of these headers."""
    return [(name, value) for name, _, value in (header.partition(": ") for header in headers)]


def check_agent(user_agent: str) -> None:
    """Raise ConfigError unless this can be a User-Agent. An empty text stands for the default."""
    require(len(user_agent) <= HEADER_CHARS_MAX, f"user_agent must have at most {HEADER_CHARS_MAX} characters")
    require(
        user_agent.isascii() and user_agent.isprintable() and user_agent == user_agent.strip(),
        "user_agent must be printable ASCII",
    )


def token_of(user_agent: str, robots_token: str) -> str:
    """Return the robots token of a job with these settings, or an empty text if the User-Agent names no crawler."""
    if robots_token:
        return robots_token
    if not user_agent:
        return TOKEN_DEFAULT
    found = _FIRST_PRODUCT.match(user_agent)
    return "" if found is None or found[0].lower() == BROWSER else found[0]


def check_token(user_agent: str, robots_token: str) -> None:
    """Raise ConfigError unless this robots token, or else the start of the User-Agent, names the crawl."""
    require(
        not robots_token or _TOKEN.fullmatch(robots_token) is not None,
        "robots_token must have 1 to 100 letters, hyphens or underscores, such as mybot",
    )
    token = token_of(user_agent, robots_token)
    require(
        bool(token),
        "user_agent begins with no name of a crawler: give robots_token, the name in it by which a robots.txt speaks "
        "to the crawl",
    )
    require(
        token.lower() in (user_agent or TOKEN_DEFAULT).lower(),
        f"robots_token {token} must be part of user_agent, so that the owner of a site knows which group of a "
        "robots.txt counts",
    )
