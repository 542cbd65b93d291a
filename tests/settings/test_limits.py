"""The bounds on what others can have a peer keep in memory, as they are in a crawl: tests that look at one lower it."""

from importlib import import_module

import pytest

from kadcrawl.settings.limits import Limits

MEGA = 1024 * 1024
LIMITS = {
    "url_chars_max": 2083,
    "links_per_page_max": 20_000,
    "sitemap_urls_max": 50_000,
    "header_bytes_max": 64 * 1024,
    "body_bytes_max": 32 * MEGA,
    "large_body_bytes": MEGA,
    "large_bodies_max": 16,
    "large_contents_max": 4,
    "inflated_bytes_max": 64 * MEGA,
    "robots_cached_max": 10_000,
    "robots_cached_bytes_max": 32 * MEGA,
    "fetches_max": 64,
    "unfinished_max": 512,
    "unfinished_bytes_max": 64 * MEGA,
    "active_sites_max": 2_000,
    "site_window": 128,
    "recent_links_max": 200_000,
    "recent_chars_max": 64 * MEGA,
    "message_bytes_max": 5 * MEGA,
    "record_page_bytes_max": 4 * MEGA,
    "record_bytes_max": MEGA,
    "records_per_page_max": 1_000,
    "record_memory_bytes": 1024 * MEGA,
}
CONSTANTS = {
    # of a page
    "crawl.extract.HTML_BYTES_MAX": 16 * MEGA,
    "crawl.extract.MARKUP_MAX": 1_000_000,
    "crawl.extract.TAG_BYTES_MAX": 64 * 1024,
    "crawl.extract.TAGS_MAX": 120_000,
    "crawl.extract.BASES_MAX": 100,
    "crawl.extract.LINKS_CHARS_MAX": 4 * MEGA,
    "crawl.extract.REMEMBERED_MAX": 100_000,
    "crawl.extract.REMEMBERED_CHARS_MAX": 32 * MEGA,
    "crawl.simhash.TEXT_BYTES_MAX": MEGA,
    # of other answers of sites
    "crawl.robots.ROBOTS_BYTES_MAX": 500 * 1024,
    "crawl.robots.SITEMAPS_MAX": 100,
    "crawl.robots.WILDCARDS_MAX": 1_000,
    "crawl.robots_search.ROBOTS_HOPS_MAX": 5,
    "crawl.robots_search.TURNS_MAX": 20,
    "crawl.sitemap.URLS_CHARS_MAX": 16 * MEGA,
    "crawl.sitemap.ELEMENTS_MAX": 1_000_000,
    "crawl.sitemap.NESTING_MAX": 16,
    "crawl.sitemap.TOKEN_BYTES_MAX": MEGA,
    "crawl.sitemap.NAMES_CHARS_MAX": 64 * 1024,
    "crawl.body.CODINGS_MAX": 2,
    "crawl.body.BROTLI_BYTES_MAX": 8 * MEGA,
    "crawl.deadly.READING_MAX": 256,
    "crawl.deadly.SUSPECTS_MAX": 256,
    "crawl.fetch.HEADERS_MAX": 256,
    "crawl.page_stream.BUFFERED_BYTES_MAX": 16 * MEGA,
    # of all sites
    "crawl.place.SITES_CACHED_MAX": 50_000,
    "crawl.twins.PAGES_MAX": 200_000,
    "crawl.twins.CHARS_MAX": 20_000_000,
    "crawl.twins.SITES_MAX": 10_000,
    "crawl.path_queries.PATHS_MAX": 100_000,
    # of peers and strangers
    "link.gate.HANDSHAKES_MAX": 100,
    "link.server.OF_ONE_PEER_MAX": 8,
    "link.server.CONNECTIONS_MAX": 4_000,
    "link.burden.BURDEN_BYTES_MAX": 32 * MEGA,
    "link.burden.QUESTIONS_BYTES_MAX": 256 * MEGA,
    "link.burden.SMALL_BYTES": 4096,
    "link.burden.UNSENT_BYTES_MAX": 8 * MEGA,
    "link.burden.WAITING_BYTES_MAX": 256 * MEGA,
    "link.burden.AT_ONCE_MAX": 4,
    "link.incoming.SEND_S": 30.0,
    "link.connection.IN_FLIGHT_MAX": 64,
    "link.basics.DATAGRAM_BYTES_MAX": 1120,
    "link.basics.BATCH_MAX": 500,
    "link.basics.ROWS_MAX": 10_000,
    "link.basics.URL_CHARS_MAX": 8192,
    "link.farewell_messages.DEPARTED_MAX": 128,
    "link.conduct.SOURCES_MAX": 1_000,
    "link.conduct.REASONS_MAX": 100,
    "members.sealing.CORRESPONDENTS_MAX": 20_000,
    "members.sealing.UNPROVEN_MAX": 5_000,
    "overlay.flood.LOOKED_AT_MAX": 20_000,
    "overlay.wave.ROWS_BYTES_MAX": 3 * MEGA,
    "history.claims.CLAIMS_MAX": 400_000,
    "history.claims.PEERS_MAX": 1_000,
    "history.copies.QUEUE_MAX": 50_000,
    "history.seen_cells.PLACES_MAX": 250_000,
    "history.sources.SOURCES_MAX": 8,
    "history.sources.NAMED_MAX": 64,
    "history.sources.ALL_MAX": 600_000,
    "peer.concord.WAITING_MAX": 64,
    "peer.leaves.LEAVES_MAX": 32,
    "peer.lending.LATE_MAX": 10_000,
    "peer.refusals.LOST_MAX": 16,
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_stands_where_it_stands(name: str) -> None:
    assert LIMITS[name] == getattr(Limits(), name)


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_bound_stands_where_it_stands(name: str) -> None:
    module, _, constant = name.rpartition(".")
    assert CONSTANTS[name] == getattr(import_module(f"kadcrawl.{module}"), constant)
