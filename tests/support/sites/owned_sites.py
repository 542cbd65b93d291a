"""Sites of a web by the peer that owns them."""

import asyncio

from aiohttp import web

from kadcrawl import Peer
from kadcrawl.keys import anchor
from tests.support.sites.web import Web, html

SITES = 64
ANSWER_S = 0.05


async def answered(request: web.BaseRequest) -> web.StreamResponse:
    """Answer a request without a link, after `ANSWER_S`."""
    await asyncio.sleep(ANSWER_S)
    return html()


def sites_of(owner: Peer, other: Peer, site: Web, count: int) -> list[int]:
    """Return the numbers of `count` sites that the first of two peers owns."""

    def owns(number: int) -> bool:
        place = anchor(owner.components.partitioner.locate(site.url(site=number)).cell, owner.job.bits)
        return owner.contact.number ^ place < other.contact.number ^ place

    found = [number for number in range(SITES) if owns(number)][:count]
    assert count == len(found), "one of two owns hardly anything"
    return found
