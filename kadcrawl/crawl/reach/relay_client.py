"""`RelayClient` asks another peer to make one request, and receives the answer in parts.

The number of questions to one peer at a time is bounded, since each waits for a site. A peer that is silent may have
made the request, so its silence is told apart from a refusal, which made none.

Tests: tests/crawl/reach/test_relay_host.py
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from kadcrawl.crawl.fetch.pinned_address import pinned
from kadcrawl.crawl.fetch.result import UNASKED, FetchError, RelayedAnswer
from kadcrawl.errors import RemoteError
from kadcrawl.link.client import LinkClient
from kadcrawl.link.wire.messages import Contact
from kadcrawl.link.wire.relay_messages import (
    FetchedForPeer,
    FetchedPart,
    FetchForPeer,
    GetFetchedPart,
    HeaderField,
    Unable,
)
from kadcrawl.settings.limits import Limits
from kadcrawl.urls import host_of

QUESTIONS_MAX = 16
"""Questions to one peer at a time. Others wait for their turn."""
PART_DEADLINE_S = 10.0
ANSWER_S = 10.0
"""Seconds for the way of a question and of its answer, beside the request itself."""


_NAMES = frozenset(map(str, FetchError))


class Unanswered(Exception):
    """Another peer did not make the request, or did not say what came of it."""

    def __init__(self, why: str, *, may_have_asked: bool, unable: Unable = "") -> None:
        super().__init__(why)
        self.unable = unable
        """The reason that the peer gave for not trying, or empty."""
        self.may_have_asked = may_have_asked
        """The peer may have made the request."""


class RelayClient:
    """The questions of one peer to others to make its requests."""

    def __init__(self, client: LinkClient, me: Callable[[], Contact], limits: Limits) -> None:
        self._client = client
        self._me = me
        self._deadline_s = limits.connect_timeout_s + limits.fetch_timeout_s + ANSWER_S
        self._places: dict[bytes, asyncio.Semaphore] = {}
        """ID of a peer -> places for questions to it, while any is taken or waited for."""
        self._users: Counter[bytes] = Counter()
        """ID of a peer -> callers that have such a place, or wait for one."""

    @asynccontextmanager
    async def place(self, helper: Contact) -> AsyncIterator[None]:
        """Wait until one more question may be asked of a peer, and keep the place while the context is open."""
        places = self._places.setdefault(helper.id, asyncio.Semaphore(QUESTIONS_MAX))
        self._users[helper.id] += 1
        try:
            async with places:
                yield
        finally:
            self._users[helper.id] -= 1
            if not self._users[helper.id]:
                del self._users[helper.id], self._places[helper.id]

    def users(self, helper: Contact) -> int:
        """Return how many callers have a place for a question to a peer, or wait for one."""
        return self._users[helper.id]

    async def fetch(
        self, helper: Contact, page: str, url: str, fields: Sequence[tuple[str, str]], body_bytes_max: int
    ) -> RelayedAnswer:
        """Return what came of one request by another peer for the site of `page`. Raises Unanswered."""
        current = pinned(host_of(url))
        address = current.address if current is not None else ""
        headers = [HeaderField(*one) for one in fields]
        first = await self._ask(helper, FetchForPeer(self._me(), page, url, headers, address=address))
        parts, have = [first.body], len(first.body)
        while first.ticket is not None and have < min(first.body_bytes, body_bytes_max):
            try:
                question = GetFetchedPart(self._me(), first.ticket, have)
                part = (await self._client.ask(helper, question, FetchedPart, PART_DEADLINE_S)).body
            except RemoteError as error:
                raise Unanswered(error.why, may_have_asked=True) from None
            if not part:
                raise Unanswered("the rest of the body is gone", may_have_asked=True)
            parts.append(part)
            have += len(part)
        return _answer(first, b"".join(parts)[:body_bytes_max], helper)

    async def reaches(self, helper: Contact, page: str, url: str) -> bool:
        """Return whether another peer can connect to the host of a URL. Raises Unanswered."""
        answer = await self._ask(helper, FetchForPeer(self._me(), page, url, [], connect_only=True))
        return not answer.error

    async def _ask(self, helper: Contact, question: FetchForPeer) -> FetchedForPeer:
        try:
            answer = await self._client.ask(helper, question, FetchedForPeer, self._deadline_s)
        except RemoteError as error:
            raise Unanswered(error.why, may_have_asked=not question.connect_only) from None
        if answer.unable:
            raise Unanswered(answer.unable, may_have_asked=False, unable=answer.unable)
        return answer


def _answer(first: FetchedForPeer, body: bytes, helper: Contact) -> RelayedAnswer:
    """Return an answer as a fetcher has it. A failure that no honest peer names counts as broken HTTP."""
    error: FetchError | None = None
    if first.error or first.status is None:
        named = FetchError(first.error) if first.error in _NAMES else None
        error = FetchError.PROTOCOL if named is None or named in UNASKED else named
    return RelayedAnswer(
        status=first.status,
        error=error,
        detail=" ".join(first.detail.split()),
        http_version=first.http_version or "1.1",
        reason=first.reason.decode("utf-8", "surrogateescape"),
        headers=tuple((one.name, one.value) for one in first.headers),
        body=body,
        address=first.address,
        via=helper.id.hex()[:16],
        proven=first.proven,
    )
