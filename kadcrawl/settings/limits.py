"""`Limits`: the bounds on time, memory and disk of one peer, a part of its `Config`."""

from dataclasses import dataclass, fields

from kadcrawl.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on the resources of a peer. Raises ConfigError unless all are above 0, or 0 where 0 has a meaning.

    They rarely need a change.
    """

    url_chars_max: int = 2083
    """Limit on the characters of a URL.

    It is the classic limit of browsers, and longer URLs are far more often traps than pages."""
    links_per_page_max: int = 20_000
    """Limit on the distinct links taken from one page. The largest honest index pages stay below it."""
    sitemap_urls_max: int = 50_000
    """Limit on the distinct URLs taken from one sitemap, the limit of sitemaps.org."""
    header_bytes_max: int = 64 * 1024
    """Limit on the headers of one response together, in bytes."""
    body_bytes_max: int = 32 * 1024 * 1024
    """Limit on a body as received, in bytes. The rest is cut off, and the WARC records the page as truncated."""
    large_body_bytes: int = 1024 * 1024
    """Size above which a body is large, in bytes. Few bodies are."""
    large_bodies_max: int = 16
    """Limit on the large bodies that are received and read at a time.

    Others wait, as `fetches_max` times `body_bytes_max` would be 2 GB."""
    large_rate_min_bytes_s: int = 64 * 1024
    """Least rate of a large body, in bytes per second, while all memory slots are taken.

    A slower body is fetched again later."""
    large_contents_max: int = 4
    """Limit on the bodies that became large by decompression and are not yet read.

    Others wait in compressed form. Few are enough, as such a body costs work but no waiting."""
    inflated_bytes_max: int = 64 * 1024 * 1024
    """Limit on a body after decompression, in bytes: the memory that one gzip bomb may cost."""
    robots_ttl_s: float = 86_400
    """Lifetime of a cached robots.txt, in seconds. RFC 9309, 2.4 allows 24 hours."""
    robots_retry_s: float = 5
    """Seconds before the first retry of an unreachable robots.txt (5xx or no answer).

    The wait doubles with each retry, and the site is forbidden until then."""
    robots_tries_max: int = 3
    """Number of tries for a robots.txt.

    Then the waiting URLs are recorded as failed, so that a crawl with a dead site still ends."""
    robots_dead_s: float = 3600
    """Seconds for which the robots.txt of such a site is not requested again, while more of its URLs appear."""
    robots_cached_max: int = 10_000
    """Limit on the parsed robots.txt files in memory. Others are in the journal."""
    robots_cached_bytes_max: int = 32 * 1024 * 1024
    """Limit on the memory of those files, in bytes. The largest takes 9 MB, 16 times its text."""
    crawl_delay_max_s: float = 60
    """Limit on a Crawl-delay, in seconds.

    A longer delay counts as this: some files ask for days to keep every crawler out."""
    connect_timeout_s: float = 10
    """Time-out of the TCP and TLS handshakes together, in seconds."""
    fetch_timeout_s: float = 120
    """Time-out of one request, in seconds, from the first byte sent to the last byte read."""
    idle_timeout_s: float = 20
    """Time-out of a silence within a response, in seconds."""
    rate_min_bytes_s: int = 512
    """Least average rate of a body, in bytes per second, after `rate_grace_s`. A slower fetch is given up."""
    rate_grace_s: float = 15
    """Seconds of a fetch in which a slow start is allowed."""
    proxy_verify_s: float = 300
    """Seconds for which a proxy is used before it is verified again."""
    proxy_retry_s: float = 5
    """Seconds before a dead proxy is first verified again. The wait doubles each time, up to a quarter of an hour."""
    proxy_source_s: float = 600
    """Seconds between two downloads of the list of proxies. They are more frequent while few proxies are alive."""
    redirects_max: int = 10
    """Limit on consecutive redirects, 0 or more. The next redirect is recorded as failed, and not followed."""
    retry_base_s: float = 5
    """Seconds before the first retry of a URL. The wait doubles each time, up to `retry_after_max_s`, with jitter."""
    retry_after_max_s: float = 3600
    """Limit on a Retry-After, in seconds. A longer wait counts as this."""
    back_off_s: float = 60
    """Seconds for which a site is first left alone after an answer 429 or 503 without a Retry-After.

    Each further such answer doubles the wait."""
    back_off_max_s: float = 86_400
    """Longest such wait, in seconds."""
    fetches_max: int = 64
    """Limit on the requests in flight of one peer.

    An eighth is reserved for the first request of each site that answers."""
    site_connections_max: int = 8
    """Limit on the requests in flight to one site with a delay of 0.

    A site with a delay has exactly one request in flight."""
    unfinished_max: int = 512
    """Limit on the fetched pages whose links are not yet acknowledged. Above it, fetching pauses (backpressure)."""
    unfinished_bytes_max: int = 64 * 1024 * 1024
    """Limit on the links and unread content of those pages, in bytes.

    Above it, fetching pauses. Pages in flight come on top: up to `record_page_bytes_max` of each page that may have
    records, and the whole page if an application reads pages."""
    active_sites_max: int = 2_000
    """Limit on the sites with URLs in memory. Others wait on disk."""
    site_window: int = 128
    """Limit on the URLs of one active site in memory, which are refilled from disk."""
    recent_links_max: int = 200_000
    """Limit on the links remembered as already forwarded, so that repeats cost no message."""
    recent_chars_max: int = 64 * 1024 * 1024
    """Limit on the characters of those links: 200,000 links of 335 characters.

    Links of the longest kind would take 400 MB."""
    batch_links_max: int = 500
    """Limit on the links in one message to another peer, about 50 KB."""
    batch_spacing_s: float = 0.05
    """Least seconds between two batches of links, or of copies, to one peer. A batch after a pause leaves at once.

    A peer with other URLs to fetch leaves half a second between two batches. A peer that crawls by URL leaves a second
    between two batches of copies, and with dozens of URLs 1.25 s between two batches of links. Copies that no page
    waits for leave later."""
    message_bytes_max: int = 5 * 1024 * 1024
    """Limit on one message between peers, in bytes as encoded."""
    commit_spacing_s: float = 0.05
    """Least seconds between two commits. An acknowledgment waits at most this long before the disk begins.

    A peer that crawls by URL and has URLs to fetch leaves five times as long between two commits."""
    warc_bytes_max: int = 1_000_000_000
    """Size at which a WARC file is closed and the next begins, in bytes. WARC 1.1, annex C suggests 1 GB."""
    pages_bytes_max: int = 1_000_000_000
    """Size at which pages.jsonl or records.jsonl is closed as a part and begins anew, in bytes: some million pages."""
    record_page_bytes_max: int = 4 * 1024 * 1024
    """Limit on a page from which records are extracted, in bytes. As a tree, 4 MB of plain HTML take 100 MB and 3 s."""
    record_bytes_max: int = 1024 * 1024
    """Limit on all records of one page, in bytes of JSON."""
    records_per_page_max: int = 1_000
    """Limit on the records of one page."""
    record_time_s: float = 10
    """Seconds for one page in the worker that extracts records.

    Then the worker is killed, and the page has no records."""
    record_memory_bytes: int = 1024 * 1024 * 1024
    """Address space of that worker, in bytes, with Python and the imports of a hook."""
    memory_bytes: int = 0
    """Private memory of the process, in bytes, or 0 for no bound. It lowers the other limits of this machine to what
    the memory has room for (settings/memory_plan.py)."""
    held_bytes_max: int = 0
    """Limit on a body in the memory of this machine, as received and decompressed, in bytes, or 0 for no other limit
    than `body_bytes_max` and `inflated_bytes_max`. The rest of a larger body is cut off."""
    remembered_tags_max: int = 100_000
    """Limit on the tags and hrefs remembered, of all directories together: about 40 MB.

    At the next one all are forgotten."""
    remembered_chars_max: int = 32 * 1024 * 1024
    """Limit on the characters of remembered tags and their meanings, estimated from the base of a page.

    Beyond the limit all are forgotten as well."""
    journal_cache_bytes: int = 32 * 1024 * 1024
    """Limit on the pages of the journal that SQLite keeps in memory, in bytes."""
    filters_bytes_max: int = 512 * 1024 * 1024
    """Limit on all epoch filters in memory, in bytes, for 180 million URLs with the cells that this peer backs up.

    Beyond it, the least recently used cells leave memory, and are read from the journal again when needed. So a peer
    that sends filters of ever more cells takes no more memory than this."""
    disk_reserve_bytes: int = 64 * 1024 * 1024
    """Least free space on the disk for fetching, in bytes. Pages in flight and the journal live on the reserve."""

    def __post_init__(self) -> None:
        require(self.back_off_max_s <= 86_400, "back_off_max_s must be at most 86400 seconds")
        for entry in fields(self):
            minimum = 0 if entry.name in _MAY_BE_ZERO else 1e-9
            require(getattr(self, entry.name) >= minimum, f"{entry.name} must be above 0")


_MAY_BE_ZERO = frozenset(
    {"redirects_max", "retry_base_s", "batch_spacing_s", "commit_spacing_s", "disk_reserve_bytes"}
    | {"memory_bytes", "held_bytes_max"}
)


def require(holds: bool, otherwise: str) -> None:
    """Raise ConfigError with the text `otherwise` unless `holds`."""
    if not holds:
        raise ConfigError(otherwise)
