"""The asking end of the link: `ask` one peer one question over a kept connection.

Owns the connections to other peers. Every question has a deadline; silence, a broken connection, a malformed or
unexpected answer all become RemoteError, so that a caller has one thing to handle.
"""

import asyncio
from typing import TypeVar

import aiohttp
from yarl import URL

from kadcrawl.errors import RemoteError
from kadcrawl.link.codec import MalformedError, pack, unpack
from kadcrawl.link.messages import Message, Offer, Refused, Reply
from kadcrawl.link.server import CONTENT_TYPE, HEADERS, PATH, read_body

CONNECTIONS_PER_PEER_MAX = 8
KEPT_IDLE_S = 60

Expected = TypeVar("Expected", bound=Message)


class LinkClient:
    """Asks other peers; keeps connections open between questions."""

    def __init__(self, message_bytes_max: int) -> None:
        self.message_bytes_max = message_bytes_max
        self.asked = 0
        self._session: aiohttp.ClientSession | None = None
        self._offers: aiohttp.ClientSession | None = None
        """Offers wait at the other end for what other messages do, so they must not take all connections."""

    async def open(self) -> None:
        """Make the connection pools; they belong to the running loop."""
        self._session, self._offers = self._pool(), self._pool()

    def _pool(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                limit_per_host=CONNECTIONS_PER_PEER_MAX,
                keepalive_timeout=KEPT_IDLE_S,
                use_dns_cache=False,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        )

    async def close(self) -> None:
        for session in (self._session, self._offers):
            if session is not None:
                await session.close()
        self._session = self._offers = None

    async def ask(
        self, address: tuple[str, int], message: Message, expected: type[Expected], deadline_s: float
    ) -> Expected:
        """Send `message` to the peer at `address` (host, port) and return its answer, of type `expected`.

        Raises RemoteError when there is no such answer within `deadline_s` seconds, or when it is Refused.
        """
        session = self._offers if isinstance(message, Offer) else self._session
        assert session is not None, "open() before ask()"
        self.asked += 1
        host, port = address
        shown = f"{host}:{port}"
        question = pack(message)
        try:
            url = URL.build(scheme="http", host=host, port=port, path=PATH)
            async with asyncio.timeout(deadline_s):
                async with session.post(url, data=question, headers=HEADERS) as response:
                    if response.status == 400:
                        raise RemoteError(shown, f"calls this {type(message).__name__} malformed (HTTP 400)")
                    if response.status != 200 or response.content_type != CONTENT_TYPE:
                        raise RemoteError(shown, f"is not a peer of this version (HTTP {response.status})")
                    answer = await read_body(response.content, self.message_bytes_max)
            reply = unpack(answer, Reply, self.message_bytes_max)
        except TimeoutError:
            raise RemoteError(shown, f"no answer to {type(message).__name__} within {deadline_s:g} s") from None
        except ValueError as error:
            raise RemoteError(shown, f"is no address: {error}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise RemoteError(shown, f"{type(message).__name__}: {error or type(error).__name__}") from None
        except MalformedError as error:
            raise RemoteError(shown, f"malformed answer to {type(message).__name__}: {error}") from None
        if isinstance(reply, Refused):
            raise RemoteError(shown, reply.why)
        if not isinstance(reply, expected):
            raise RemoteError(shown, f"answered {type(message).__name__} by {type(reply).__name__}")
        return reply
