"""The SURT of a URL: the key by which an index of WARC files is sorted and searched (Sort-friendly URI Reordering).

`https://www.example.org/A/?b=2&a=1` has the SURT `org,example)/a?a=1&b=2`. A replay tool looks pages up by the SURT of
the URL that a person asks for, so both must fold the same URLs into one. These are the rules of the Wayback Machine.
The library of that name has a license that kadcrawl cannot take over, so the tests compare this module with it.

Tests: tests/crawl/output/test_surt.py
"""

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""The printable characters that stay as they are. `%` and `#` do not."""
_DEFAULT_PORTS = {b"http": b"80", b"https": b"443"}
_WWW = re.compile(rb"www\d*\.")
_SESSION_IN_PATH = (
    re.compile(rb"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.IGNORECASE | re.DOTALL),
    re.compile(rb"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.IGNORECASE | re.DOTALL),
)
"""Session IDs of ASP.NET in a path, between two groups that stay."""
_SESSION_IN_QUERY = tuple(
    re.compile(rb"(.*)" + session + rb"(?:&(.*))?", re.IGNORECASE)
    for session in (
        rb"jsessionid=[0-9a-z]{32}",
        rb"phpsessid=[0-9a-z]{32}",
        rb"sid=[0-9a-z]{32}",
        rb"aspsessionid[a-z]{8}=[a-z]{24}",
        rb"cfid=[^&]+&cftoken=[^&]+",
    )
)
"""Session IDs at the end of an argument, between two groups that stay."""


def surt_of(url: str) -> str:
    """Return the SURT of a canonical http or https URL."""
    scheme, _, rest = url.partition("#")[0].encode().partition(b"://")
    before_query, _, query = rest.partition(b"?")
    authority, slash, path = before_query.partition(b"/")
    surt = _host(scheme, authority.rpartition(b"@")[2]) + b")" + _path(slash + path)
    if arguments := _query(query):
        surt += b"?" + arguments
    return surt.decode()


def _host(scheme: bytes, host_port: bytes) -> bytes:
    """Return the labels of the host from right to left, with the port if it is not that of the scheme."""
    if host_port.startswith(b"["):
        host, _, port = host_port[1:].partition(b"]")
        port = port.removeprefix(b":")
    else:
        host, _, port = host_port.partition(b":")
    host = _escaped(_unescaped(host).replace(b"..", b".").strip(b".").lower())
    if (www := _WWW.match(host)) is not None:
        host = host[www.end() :]
    host = b",".join(reversed(host.split(b".")))
    return host if port in (b"", _DEFAULT_PORTS.get(scheme)) else host + b":" + port


def _path(path: bytes) -> bytes:
    kept: list[bytes] = []
    segments = _unescaped(path).split(b"/")[1:]
    for segment in segments:
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    # Empty segments go, but for the last, which stands for a slash at the end.
    named = [segment for segment in kept[:-1] if segment] + kept[-1:]
    path = _escaped(b"/" + b"/".join(named)).lower()
    for pattern in _SESSION_IN_PATH:
        if (match := pattern.fullmatch(path)) is not None:
            path = match[1] + match[2]
    return path[:-1] if len(path) > 1 and path.endswith(b"/") else path


def _query(query: bytes) -> bytes:
    query = _escaped(_unescaped(query))
    for pattern in _SESSION_IN_QUERY:
        if (match := pattern.fullmatch(query)) is not None:
            query = match[1] + (match[2] or b"")
    query = query.lower()
    if len(query) < 2:
        return query
    return b"&".join(b"=".join(argument) for argument in sorted(one.split(b"=", 1) for one in query.split(b"&")))


def _unescaped(text: bytes) -> bytes:
    """Return a text without escapes, escaped ones included."""
    while (less := unquote_to_bytes(text)) != text:
        text = less
    return text


def _escaped(text: bytes) -> bytes:
    return quote_from_bytes(text, safe=_SAFE).encode()
