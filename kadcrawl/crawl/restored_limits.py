"""The limits of a crawl at one peer, as the journal of its last run has them.

Tests: tests/peer/test_max_bytes.py, tests/peer/test_damage.py
"""

from collections.abc import Callable

from kadcrawl.crawl.byte_budget import ByteBudget
from kadcrawl.crawl.crawl_limits import CrawlLimits
from kadcrawl.crawl.crawl_time import CrawlTime
from kadcrawl.crawl.grants_journal import read_grants
from kadcrawl.crawl.output.counters import Counters
from kadcrawl.crawl.page_budget import PAGES_BEGUN, Budget
from kadcrawl.crawl.time_count import journaled_s
from kadcrawl.settings.job import Job
from kadcrawl.store.meta_table import MetaTable


def restored_limits(job: Job, meta: MetaTable, counters: Counters, now: Callable[[], float]) -> CrawlLimits:
    """Return the limits of the job, of which the last run has used as much as the journal says.

    `now` gives seconds since 1970. Raises StorageError if a value cannot be read.
    """
    begun = meta.read(PAGES_BEGUN, int)
    grants = read_grants(meta, "pages", now())
    pages = Budget(
        job.max_pages,
        grants.granted,
        counters.tried if begun is None else begun,
        grants.known,
        grants.epochs,
        grants.epoch,
    )
    grants = read_grants(meta, "bytes", now())
    bytes_ = ByteBudget(
        job.max_bytes,
        grants.granted,
        lambda: (counters.body_bytes, counters.pages),
        grants.known,
        grants.epochs,
        grants.epoch,
    )
    return CrawlLimits(pages, bytes_, CrawlTime(job.max_time_s, journaled_s(meta)), now)
