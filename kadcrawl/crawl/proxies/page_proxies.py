"""Finds the proxies that a web page names, in its text and in the rows of its tables (P3, step 1).

In text a proxy is an IP address with a port, such as ``203.0.113.7:3128``, perhaps with a scheme in front. In a table
the address and the port may be cells of one row. A cell such as ``SOCKS5`` names the kind of the row's proxy. Only
addresses count: a host name with a port would make any link on the page a proxy. Comments, scripts and styles are
passed over. No tree of the page is built, so the work is linear in its size. The health check decides whether an
address is a proxy at all.
"""

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from kadcrawl.errors import ConfigError
from kadcrawl.settings.proxy_list import CREDENTIAL_CHARS_MAX, Proxy, parse

PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
"""The media types of a web page."""
KINDS = {"http": "http", "https": "http", "socks5": "socks5", "socks4": "socks4"}
"""The words for the kind of a proxy in a table, and their schemes.

In tables HTTPS means that the proxy makes tunnels to https:// sites. The connection to the proxy itself is plain."""
ROW_TAGS = frozenset({"tr", "table", "thead", "tbody", "tfoot"})
"""Tags that end a row."""
CELL_TAGS = frozenset({"td", "th"})
INLINE_TAGS = frozenset(
    {"a", "abbr", "b", "bdi", "code", "em", "font", "i", "kbd", "mark", "small", "span", "strong", "u"}
)
"""Tags that do not part the text around them."""

_PASSED_OVER = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|template)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)[^<>]*>?")
_IPV4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_ADDRESS = re.compile(
    r"(?<![\w.:/@\[-])"
    rf"(?:(?P<scheme>https?|socks5h?)://(?:(?P<credentials>[^\s/@:]{{1,{3 * CREDENTIAL_CHARS_MAX}}}"
    rf":[^\s/@]{{0,{3 * CREDENTIAL_CHARS_MAX}}})@)?)?"
    rf"(?P<host>{_IPV4}|\[[0-9A-Fa-f:.]{{2,45}}\]):(?P<port>[0-9]{{1,5}})(?![\w:@]|[.-]\w)",
    re.IGNORECASE,
)
_HOST_CELL = re.compile(rf"{_IPV4}|\[?[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f:.]{{1,45}}\]?")
_PORT_CELL = re.compile(r"[0-9]{1,5}")


def is_page(mime: str, text: str) -> bool:
    """Return whether the answer of a list URL is a web page, and not a list with a proxy a line."""
    return "<" in text and (mime in PAGE_TYPES or text[:100].lstrip().lower().startswith(("<!doctype html", "<html")))


def page_proxies(page: str) -> Iterator[Proxy | ConfigError]:
    """Yield the proxies that a page names, in their order, and an error for each that cannot be used."""
    for row in _rows(page):
        kind = _kind(row)
        found = [match for cell in row for match in _ADDRESS.finditer(cell)]
        for match in found:
            credentials = f"{match['credentials']}@" if match["credentials"] else ""
            yield _proxy(match["scheme"] or kind, credentials, match["host"], match["port"])
        if not found and len(row) > 1:
            yield from _of_cells(row, kind)


def _of_cells(row: Sequence[str], kind: str) -> Iterator[Proxy | ConfigError]:
    """Yield the proxy of a row whose address and port are cells of their own."""
    hosts = (number for number, cell in enumerate(row) if _HOST_CELL.fullmatch(cell))
    if (at := next(hosts, None)) is None:
        return
    port = next((cell for cell in row[at + 1 :] if _PORT_CELL.fullmatch(cell)), None)
    if port is not None:
        host = row[at].strip("[]")
        yield _proxy(kind, "", f"[{host}]" if ":" in host else host, port)


def _proxy(scheme: str, credentials: str, host: str, port: str) -> Proxy | ConfigError:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return ConfigError("not an IP address")
    try:
        return parse(f"{scheme}://{credentials}{host}:{port}")
    except ConfigError as error:
        return error


def _kind(row: Sequence[str]) -> str:
    """Return the scheme that the cells of a row name, http without any."""
    kinds = set()
    for cell in row:
        words = cell.lower().replace("/", " ").replace(",", " ").split()
        if words and all(word in KINDS for word in words):
            kinds |= {KINDS[word] for word in words}
    return next((kind for kind in ("http", "socks5", "socks4") if kind in kinds), "http")


def _rows(page: str) -> Iterator[list[str]]:
    """Yield the texts of the cells of each row. Outside of tables a block of text is a row of one cell."""
    from html import unescape  # Not at the top: its table takes a third of a megabyte, and most crawls have no proxies.

    text = _PASSED_OVER.sub(" ", page)
    row: list[str] = []
    cell: list[str] = []
    in_row, at = False, 0

    def end_cell() -> None:
        if said := unescape("".join(cell)).strip():
            row.append(said)
        cell.clear()

    for tag in _TAG.finditer(text):
        cell.append(text[at : tag.start()])
        at, name = tag.end(), tag[2].lower()
        if name in ROW_TAGS or (not in_row and name not in INLINE_TAGS and name not in CELL_TAGS):
            end_cell()
            yield row
            row = []
            in_row = (name == "tr" and not tag[1]) or (in_row and name not in ROW_TAGS)
        elif name in CELL_TAGS:
            end_cell()
        elif name not in INLINE_TAGS:
            cell.append(" ")
    cell.append(text[at:])
    end_cell()
    yield row
