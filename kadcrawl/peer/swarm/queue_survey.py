"""The conversation in which one peer asks all others for their queues, until all have counted.

Tests: tests/peer/swarm/test_queue_survey.py
"""

import asyncio
from collections.abc import Mapping

import msgspec

from kadcrawl.errors import ConfigError
from kadcrawl.link.handler import Handler
from kadcrawl.link.wire.messages import Message, Refused
from kadcrawl.link.wire.queue_messages import QUEUED_SITES_MAX, GetQueue, Queue, QueueCounts, SurveyQueue
from kadcrawl.peer.runtime import Runtime
from kadcrawl.settings.steering import match_of
from kadcrawl.urls import seed, site_of

COUNT_S = 15.0
"""Seconds for which a command waits for peers that count. It says when some are left."""
COUNT_POLL_S = 0.1
COUNT_POLL_MOST_S = 1.0
"""First and longest wait before the question is repeated. It doubles."""


async def survey_queue(runtime: Runtime, survey: SurveyQueue) -> Queue:
    """Return the queue of the swarm. Raises ConfigError for text that is no site of this crawl."""
    if survey.site:
        # Any URL names the site that it is of: a question changes nothing at the site's other pages.
        named = site_of(seed(survey.site), "host") if "://" in survey.site else survey.site
        site = match_of(named, runtime.job.partition)
        if site.startswith("*."):
            raise ConfigError(f"one site is counted at a time: name a host such as {site.removeprefix('*.')}")
        survey = msgspec.structs.replace(survey, site=site)
    elif survey.urls:
        raise ConfigError("the next URLs are those of one site: name the site")
    # By URL the largest hosts of the swarm need not be the largest of any peer, so all are asked for the most.
    wanted, survey = survey.sites, msgspec.structs.replace(survey, sites=QUEUED_SITES_MAX if survey.sites else 0)
    time = asyncio.get_running_loop().time
    give_up_at, wait_s = time() + COUNT_S, COUNT_POLL_S
    answer = await runtime.waves.ask_all(survey)
    while answer.tally.retrying and time() < give_up_at:
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, COUNT_POLL_MOST_S)
        answer = await runtime.waves.ask_all(survey)
    counts = answer.queue or QueueCounts()
    counts = msgspec.structs.replace(counts, top=counts.top[:wanted])
    return Queue(counts, answer.tally.missing, answer.tally.retrying, runtime.standing_orders.to_wire())


class QueueReporter:
    """The answers of one peer to a person who looks at the queue."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def handlers(self) -> Mapping[type[Message], Handler]:
        """Return the handler of each message type."""
        return {GetQueue: self._report}

    async def _report(self, message: GetQueue) -> Message:
        try:
            return await survey_queue(self._runtime, message.survey)
        except ConfigError as error:
            return Refused(str(error))
