"""Messages by which a peer fetches a URL for the owner of its site, which cannot reach the site itself.

The owner keeps the URL, its site's clock and its results. The other peer only makes the request, once, and passes the
answer back as received. So a lost message costs a try at most, and both ends may crash at any time.

Tests: tests/link/wire/test_messages.py, tests/crawl/reach/test_relay_host.py
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from kadcrawl.link.wire.basics import PRINTABLE, Contact, Count, Message, Url

RELAY_PART_BYTES_MAX = 1024 * 1024
"""Bytes of a body in one message. The rest of a longer body is asked for."""
RELAY_BODY_BYTES_MAX = 2**32
"""Bytes of a whole body."""
RELAY_HEADERS_MAX = 256
"""Headers of one answer (crawl/fetch/fetcher.py)."""
RELAY_FIELD_BYTES_MAX = 64 * 1024
"""Bytes of one header, of a request or of an answer."""

RELAY_FIELDS_MAX = 32
"""Headers of one request beside those of every request."""


class HeaderField(Struct, frozen=True, array_like=True):
    """One header of a request."""

    name: Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9-]+\Z")]
    """The name, in any case."""
    value: Annotated[str, Meta(max_length=RELAY_FIELD_BYTES_MAX, pattern=PRINTABLE)]
    """The value, of printable ASCII."""


class ReceivedField(Struct, frozen=True, array_like=True):
    """One header of an answer, as received."""

    name: Annotated[bytes, Meta(max_length=RELAY_FIELD_BYTES_MAX)]
    """The name as received."""
    value: Annotated[bytes, Meta(max_length=RELAY_FIELD_BYTES_MAX)]
    """The value as received, without the space around it."""


Ticket = Annotated[bytes, Meta(min_length=8, max_length=8)]
Part = Annotated[bytes, Meta(max_length=RELAY_PART_BYTES_MAX)]
Unable = Literal["", "busy", "network", "refused"]
"""The reason for which a peer has not tried: it has no room or no time, its own network fails, or it must not."""


class FetchForPeer(Message, frozen=True):
    """The owner of a site asks another peer to make one request there. Answered by FetchedForPeer.

    A repeat makes another request.
    """

    owner: Contact
    """The owner, which asks."""
    page: Url
    """The URL of the owner's site for which the request is made."""
    url: Url
    """The URL to request: the page, a robots.txt, or the target of its redirect."""
    fields: Annotated[list[HeaderField], Meta(max_length=RELAY_FIELDS_MAX)] = field(default_factory=list)
    """The headers of the request beside those of every request."""
    connect_only: bool = False
    """Connect to the host and send no request."""
    address: Annotated[str, Meta(max_length=64, pattern=PRINTABLE)] = ""
    """The IP address to connect to, whose clock the owner has leased, or empty if the peer is to find an address."""


class FetchedForPeer(Message, frozen=True):
    """The answer to FetchForPeer: what the site answered, or why there is no answer."""

    unable: Unable = ""
    """The reason for which the peer has not tried, or empty."""
    error: Annotated[str, Meta(max_length=40, pattern=PRINTABLE)] = ""
    """The failure of the request (crawl/fetch/result.py), or empty."""
    detail: Annotated[str, Meta(max_length=200)] = ""
    """A few words about the failure."""
    proven: bool = False
    """The peer could not connect, although its network works: it reached another host just then."""
    status: Annotated[int, Meta(ge=200, le=999)] | None = None
    """The status, or None without an answer."""
    http_version: Literal["", "1.0", "1.1"] = ""
    """The version of HTTP of the answer."""
    reason: Annotated[bytes, Meta(max_length=1000)] = b""
    """The reason phrase as received."""
    headers: Annotated[list[ReceivedField], Meta(max_length=RELAY_HEADERS_MAX)] = field(default_factory=list)
    """The headers of the answer, in their order."""
    address: Annotated[str, Meta(max_length=64, pattern=PRINTABLE)] = ""
    """The IP address that answered, or empty."""
    body_bytes: Annotated[int, Meta(ge=0, le=RELAY_BODY_BYTES_MAX)] = 0
    """Bytes of the whole body as received."""
    body: Part = b""
    """The first part of the body."""
    ticket: Ticket | None = None
    """The name under which the rest of the body waits for some seconds, if there is a rest."""


class GetFetchedPart(Message, frozen=True):
    """The owner asks for a further part of a body. Answered by FetchedPart. A repeat is answered again."""

    owner: Contact
    """The owner, which asks."""
    ticket: Ticket
    """The ticket of the answer with the first part."""
    offset: Count
    """The bytes of the body that the owner has."""


class FetchedPart(Message, frozen=True):
    """The answer to GetFetchedPart: the next bytes of the body, or none if the body is gone."""

    body: Part
    """The next bytes of the body, or none."""


RelayRequest = FetchForPeer | GetFetchedPart
RelayReply = FetchedForPeer | FetchedPart
