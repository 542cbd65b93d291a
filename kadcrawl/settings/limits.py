"""The bounds that keep a peer alive whatever it meets: `Limits`, a part of its `Config`."""

from dataclasses import dataclass, fields

from kadcrawl.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds, each with its unit and the reason it stands where it stands."""

    url_chars_max: int = 2083
    """Longer URLs are traps far more often than pages; the classic browser limit."""
    links_per_page_max: int = 20_000
    """Distinct links taken from one page; the largest honest index pages stay below."""
    sitemap_urls_max: int = 50_000
    """Distinct URLs taken from one sitemap: as many as sitemaps.org allows."""
    header_bytes_max: int = 64 * 1024
    """All response headers of one response together."""
    body_bytes_max: int = 32 * 1024 * 1024
    """Body as received; the rest is cut off and the page recorded as truncated by us."""
    large_body_bytes: int = 1024 * 1024
    """A body above this is large: few are."""
    large_bodies_max: int = 16
    """Large bodies received and read at a time; the others wait, as `fetches_max` of `body_bytes_max` would be 2 GB."""
    large_rate_min_bytes_s: int = 64 * 1024
    """How fast a large body must come while all places are taken; a slower one is asked for again later."""
    large_contents_max: int = 4
    """Bodies that become large when they are decompressed, at a time, until they have been read; the others wait as
    they came. Such a one costs work and no waiting, so few are enough."""
    inflated_bytes_max: int = 64 * 1024 * 1024
    """Body after decompression: what one gzip bomb may cost in memory."""
    robots_ttl_s: float = 86_400
    """RFC 9309 2.4: a cached robots.txt is not used for longer than 24 hours."""
    robots_retry_s: float = 5
    """An unreachable robots.txt (5xx, no answer) forbids the site for now; asked again after this, then twice this."""
    robots_tries_max: int = 3
    """Then the URLs waiting for it are recorded as failed, so that a crawl with a dead site still ends."""
    robots_dead_s: float = 3600
    """How long the robots.txt of such a site is not asked for again, while more of its URLs turn up."""
    robots_cached_max: int = 10_000
    """Parsed robots.txt files in memory; the others are in the journal."""
    robots_cached_bytes_max: int = 32 * 1024 * 1024
    """What those files take in memory: the largest 9 MB, 16 times its text."""
    crawl_delay_max_s: float = 60
    """A Crawl-delay above this is taken as this: some files ask for days to keep everybody out."""
    connect_timeout_s: float = 10
    """TCP and TLS set-up together."""
    fetch_timeout_s: float = 120
    """One request from first byte sent to last byte read."""
    idle_timeout_s: float = 20
    """Silence of the server in the middle of an answer."""
    rate_min_bytes_s: int = 512
    """Average below which a body that drips is given up, after `rate_grace_s`."""
    rate_grace_s: float = 15
    """Time a slow start is forgiven."""
    proxy_verify_s: float = 300
    """How long a proxy is used before it is verified again."""
    proxy_retry_s: float = 5
    """First wait before a dead proxy is verified again; doubles each time, to a quarter of an hour."""
    proxy_source_s: float = 600
    """How often the source of proxies is asked what there are; while few are alive, sooner."""
    redirects_max: int = 10
    """Hops in a row; the hop after that is recorded as failed, not followed."""
    retry_base_s: float = 5
    """First wait before a retry; doubles each time up to `retry_after_max_s`, with jitter."""
    retry_after_max_s: float = 3600
    """A Retry-After above this is taken as this."""
    fetches_max: int = 64
    """Requests in flight per peer; an eighth of them only for the first one of each site that answers."""
    site_connections_max: int = 8
    """Requests in flight to one site when its delay is 0; with a delay there is exactly one."""
    unfinished_max: int = 512
    """Pages fetched whose links are not yet acknowledged; above it fetching waits (backpressure)."""
    unfinished_bytes_max: int = 64 * 1024 * 1024
    """Links and unread content of those pages; above it fetching waits. What is in flight then comes on top: of each
    page up to `record_page_bytes_max` if it may have records, and all of it if an application reads pages."""
    active_sites_max: int = 2_000
    """Sites with URLs in memory; the others wait on disk."""
    site_window: int = 128
    """URLs of one active site in memory; refilled from disk."""
    recent_links_max: int = 200_000
    """Links remembered as already forwarded, so that repeats cost no message."""
    recent_chars_max: int = 64 * 1024 * 1024
    """Characters of these: 200,000 of 335 each, where the longest would take 400 MB."""
    batch_links_max: int = 500
    """Links in one offer to another peer: about 50 KB."""
    batch_spacing_s: float = 0.05
    """Least time between two batches of links, or of copies to one peer: what comes alone goes at once."""
    message_bytes_max: int = 5 * 1024 * 1024
    """One message between peers, packed."""
    commit_spacing_s: float = 0.05
    """Least time between two commits: what is acknowledged waits at most this long for the disk to begin."""
    warc_bytes_max: int = 1_000_000_000
    """A WARC file is closed and the next begun at this size (WARC 1.1 annex C suggests 1 GB)."""
    record_page_bytes_max: int = 4 * 1024 * 1024
    """Of a page records are taken out of; as a tree 4 MB of plain HTML take 100 MB and 3 s."""
    record_bytes_max: int = 1024 * 1024
    """All records of one page, as JSON."""
    records_per_page_max: int = 1_000
    """Records of one page."""
    record_time_s: float = 10
    """One page in the worker; then that is killed and the page has no records."""
    record_memory_bytes: int = 1024 * 1024 * 1024
    """Address space of the worker, with Python and what a hook imports."""
    disk_reserve_bytes: int = 64 * 1024 * 1024
    """With less room on the disk nothing is fetched; what is under way, and the journal, live on the reserve."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            minimum = 0 if entry.name in _MAY_BE_ZERO else 1e-9
            require(getattr(self, entry.name) >= minimum, f"{entry.name} must be above 0")


_MAY_BE_ZERO = frozenset({"redirects_max", "retry_base_s", "batch_spacing_s", "commit_spacing_s", "disk_reserve_bytes"})


def require(holds: bool, otherwise: str) -> None:
    """Raise ConfigError with this text unless it holds."""
    if not holds:
        raise ConfigError(otherwise)
