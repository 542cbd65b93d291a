"""The conversation in which one peer gives an order to retry, and counts the URLs that become pending by it.

The wave of the order is sent again until every peer has looked through its open cells: a repeat changes nothing, and
its answers count on. A part of the swarm that does not answer hears of the order by heartbeats.

Tests: tests/peer/test_retry.py
"""

import asyncio
import logging

from kadcrawl.errors import ConfigError, RemoteError
from kadcrawl.link.wire.messages import Answer
from kadcrawl.link.wire.order_messages import Steer
from kadcrawl.link.wire.retry_messages import Retried, Retry, RetryOrder
from kadcrawl.peer.runtime import Runtime
from kadcrawl.settings.job import Job

COUNT_S = 15.0
"""Seconds for which a command waits until all cells were looked through. It says when some are left."""
COUNT_POLL_S = 0.3

log = logging.getLogger(__name__)


async def retry_failed(runtime: Runtime, wanted: RetryOrder) -> Retried:
    """Give the order to retry, and return how many URLs have become pending. Raises ConfigError if the job forgets."""
    refuse_forgetful(runtime.job)
    with runtime.seeding():
        question = Retry(runtime.retry_orders.order(wanted, runtime.resources.clock.now()))
        try:
            answer = await runtime.waves.reach_all(question)
        except RemoteError as error:
            log.warning("retry.late stamp=%d why=%s", question.order.stamp, error)
            answer = await runtime.waves.ask_all(question)
        answer = await counted(runtime, question, answer)
        await runtime.resources.store.journal.durable()
    urls = {one.reason: one.urls for one in answer.tally.retried}
    log.info("retry.ordered stamp=%d urls=%d", question.order.stamp, sum(urls.values()))
    return Retried(urls, answer.tally.retrying, answer.tally.missing)


def refuse_forgetful(job: Job) -> None:
    """Raise ConfigError if the job does not remember its failed URLs."""
    if job.history != "exact":
        raise ConfigError(
            "this crawl keeps fingerprints (--history bloom) and does not remember which URLs failed: "
            "crawl them in another directory, with --history exact"
        )


def refuse_again(job: Job) -> None:
    """Raise ConfigError if the job cannot have a URL that is done fetched again."""
    if job.history != "exact":
        raise ConfigError(
            "this crawl keeps fingerprints (--history bloom), and no URL that is done can be taken out of them: "
            "crawl the URLs in another directory, with --history exact"
        )


async def counted(runtime: Runtime, question: Retry | Steer, answer: Answer) -> Answer:
    """Repeat a wave until all peers have looked through their cells, for a while, and return its last answer."""
    time = asyncio.get_running_loop().time
    give_up_at = time() + COUNT_S
    while answer.tally.retrying and time() < give_up_at:
        await asyncio.sleep(COUNT_POLL_S)
        answer = await runtime.waves.ask_all(question)
    return answer
