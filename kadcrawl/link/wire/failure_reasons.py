"""The reasons of failed URLs in plain words, with advice where a person can help.

The names are those of `FetchError`, of answers with a status from 400 up, and of pages that the crawl leaves out.

Tests: tests/cli/view/test_last_lines.py
"""

from dataclasses import dataclass
from re import compile
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """The meaning of a reason, and advice. Both are parts of a sentence."""

    meaning: str
    advice: str = ""
    unreached: bool = False
    """The cause may be this machine or its network, so `kadcrawl doctor URL` can find it."""

    def __str__(self) -> str:
        return f"{self.meaning}; {self.advice}" if self.advice else self.meaning


_BY_NAME: Final = {
    "address_refused": Reason(
        "the host is at an address that is neither public nor allowed",
        "if it is yours, kadcrawl retry --reason address_refused, and go on with --allow-network",
    ),
    "bad_encoding": Reason("the body is not in the encoding that its header names"),
    "bad_redirect": Reason("the page redirects to something that is no URL"),
    "bad_sitemap": Reason("the sitemap or feed cannot be read to its end"),
    "bad_url": Reason("no request can be made of this URL"),
    "body_too_large": Reason("the body is larger than the limit"),
    "connect": Reason("the host refuses connections, or cannot be reached in time", unreached=True),
    "cookie_wall": Reason("the URL redirects to itself until a cookie comes back, and the crawl keeps none"),
    "depth": Reason("the URL is further from the seeds than --max-depth"),
    "disconnected": Reason("the site closed the connection before it answered"),
    "dns": Reason("the host's name has no address, or no name server answers", unreached=True),
    "exclude": Reason("the URL matches a pattern of --exclude"),
    "headers_too_large": Reason("the headers are larger than the limit"),
    "idle": Reason("the site stopped in the middle of its answer"),
    "include": Reason("the URL matches no pattern of --include"),
    "inflated_too_large": Reason("the page is larger than the limit after decompression"),
    "inflated_no_memory": Reason(
        "the page is larger after decompression than the memory of its peer has room for",
        "kadcrawl retry --reason inflated_no_memory fetches it, once its peer runs with a larger --memory",
    ),
    "internal_error": Reason("kadcrawl has a fault that this page shows", "peer.log has the details: please report it"),
    "kept_waiting": Reason("the site closed the connection while this machine was busy", "use a smaller --fetches"),
    "killed_peer": Reason("the page crashed two peers, so nobody asks for it any more", "please report it"),
    "length": Reason("the URL is longer than the limit"),
    "login_failed": Reason("nobody can log in to the site", "check the login of its rule, and the secret"),
    "no_memory": Reason(
        "the body is larger than the memory of its peer has room for",
        "kadcrawl retry --reason no_memory fetches it, once its peer runs with a larger --memory",
    ),
    "path_repeats": Reason("the path of the URL repeats itself too often"),
    "path_segments": Reason("the path of the URL has too many segments"),
    "protocol": Reason("the answer is not valid HTTP"),
    "proxy_judge": Reason("the URL is on the site of --proxy-judge, which is not crawled"),
    "query_parameters": Reason("the query of the URL has too many parameters"),
    "redirect_limit": Reason("the URL redirects too often"),
    "redirect_loop": Reason("the redirects lead back to where they began"),
    "robots": Reason("robots.txt forbids it"),
    "robots_unreachable": Reason("the robots.txt cannot be read, so the site is left alone"),
    "scope": Reason("the URL is outside the scope"),
    "scope_removed": Reason(
        "a person took the URL out of the scope",
        "after kadcrawl scope add, kadcrawl retry --reason scope_removed fetches it",
    ),
    "site_dropped": Reason(
        "a person dropped the pending URLs of the site", "kadcrawl retry --reason site_dropped fetches them"
    ),
    "site_excluded": Reason(
        "a person excluded the site", "after kadcrawl site include, kadcrawl retry --reason site_excluded fetches them"
    ),
    "site_off": Reason("a rule of [[sites]] leaves the site out of the crawl"),
    "site_refused": Reason(
        "the site answered too many requests in a row with 429 or 503",
        "run kadcrawl retry --reason site_refused some hours later, or use a larger --delay",
    ),
    "seed_left_scope": Reason("a seed redirects to a URL that is not crawled"),
    "timeout": Reason("the answer was not complete in time", unreached=True),
    "tls": Reason("the certificate is not valid, or TLS failed", unreached=True),
    "tls_expired": Reason(
        "the certificate has expired or is not valid yet", "check the clock of this machine", unreached=True
    ),
    "tls_name": Reason("the certificate is for another host", unreached=True),
    "tls_self_signed": Reason("the certificate is signed by itself, not by an authority", unreached=True),
    "tls_unknown_ca": Reason("the authority behind the certificate is not known to this machine", unreached=True),
    "too_slow": Reason("the answer came too slowly"),
    "truncated": Reason("the connection closed in the middle of the answer"),
    "http_401": Reason("the site wants a login"),
    "http_403": Reason("the site refuses access"),
    "http_404": Reason("there is no such page"),
    "http_410": Reason("the page is gone"),
    "http_429": Reason("the site asks for fewer requests", "use a larger --delay"),
    "http_451": Reason("the page is withheld for legal reasons"),
}
_STATUS: Final = compile("http_([4-9][0-9][0-9]|[45]xx|odd)")
_CLIENT: Final = Reason("the site does not accept the request")
_SERVER: Final = Reason("the site has an error")
_ODD: Final = Reason("the site answered with an unknown status")
_UNKNOWN: Final = Reason("pages.jsonl has the details")


def reason_names() -> list[str]:
    """Return the names of all reasons that do not stand for a status."""
    return [name for name in _BY_NAME if not name.startswith("http_")]


def is_reason(name: str) -> bool:
    """Return whether a text is the name of a reason, as counted or as in the page line."""
    return name in _BY_NAME or _STATUS.fullmatch(name) is not None


def explained(name: str) -> Reason:
    """Return the meaning of a reason by its name, also of a name that this release does not have."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.startswith("http_"):
        return _CLIENT if name[5:6] == "4" else _SERVER if name[5:6] == "5" else _ODD
    return _UNKNOWN
