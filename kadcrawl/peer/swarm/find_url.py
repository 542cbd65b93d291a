"""The conversation in which a person follows one URL: the asked peer finds its owner, which answers from its records.

Tests: tests/peer/swarm/test_find_url.py
"""

from collections.abc import Mapping

from kadcrawl.errors import ConfigError
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.basics import LONG_S_MAX, SMALL_MAX, Contact
from kadcrawl.link.wire.find_url_messages import HOLDERS_TOLD_MAX, FindUrl, UrlFound, UrlState
from kadcrawl.link.wire.messages import Message, Refused
from kadcrawl.peer.runtime import Runtime
from kadcrawl.store.schema import is_pending, round_of
from kadcrawl.urls import is_canonical

FIND_DEADLINE_S = 10.0
"""Longest wait for the owner's answer."""


async def find_url(runtime: Runtime, url: str) -> UrlFound:
    """Return what the owner of a canonical URL knows of it. Raises RemoteError, and ConfigError for other text."""
    location = runtime.components.partitioner.locate_offered(url) if is_canonical(url) else None
    if location is None:
        raise ConfigError("that is no URL as the crawl has them")
    owner = await runtime.overlay.owner(location.cell)
    if owner.id == runtime.contact.id:
        return url_here(runtime, url)
    return await runtime.resources.client.ask(owner, FindUrl(url, here=True), UrlFound, FIND_DEADLINE_S)


def url_here(runtime: Runtime, url: str) -> UrlFound:
    """Return what this peer knows of a canonical URL."""
    location = runtime.components.partitioner.locate(url)
    key, store, holdings = location.key, runtime.resources.store, runtime.cells.holdings
    owned = holdings.owned.get(location.cell)
    state, entry, visit = store.state(key), store.entry(key), store.last_visit(key)
    named: UrlState = "unknown"
    if state is not None and is_pending(state):
        named = "under way" if key in runtime.components.frontier.keys_out(location.cell) else "pending"
    elif state is not None and visit is None and runtime.job.history == "bloom":
        named = "finished"
    elif state is not None:
        named = "failed" if visit is not None and visit.failed else "done"
    due_at = entry.due if entry is not None and entry.due else visit.due if visit is not None else None
    backups: list[Contact] = [*owned.backups] if owned is not None else []
    return UrlFound(
        owner=runtime.contact,
        backups=backups[:HOLDERS_TOLD_MAX],
        state=named,
        reason=visit.failed[:40] if visit is not None else "",
        depth=min(entry.depth, SMALL_MAX) if entry is not None else 0,
        tries=min(entry.tries, SMALL_MAX) if entry is not None else 0,
        rounds=min(round_of(state), SMALL_MAX) if state is not None else 0,
        due_at=None if due_at is None else min(max(0.0, due_at), LONG_S_MAX),
        captured=visit.captured[:40] if visit is not None else "",
    )


class UrlFinder:
    """The answers of one peer to people who follow a URL."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {FindUrl: self._answer}

    async def _answer(self, message: FindUrl) -> Message:
        if not message.here:
            try:
                return await find_url(self._runtime, message.url)
            except ConfigError as error:
                return Refused(str(error))
        if not is_canonical(message.url) or self._runtime.components.partitioner.locate_offered(message.url) is None:
            return Refused("that is no URL as the crawl has them")
        return url_here(self._runtime, message.url)
