"""Test the real bounds on the memory that others can make a peer use. Other tests lower these bounds."""

from importlib import import_module

import pytest

from kadcrawl.settings.limits import Limits
from tests.support.cases import cases

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
    "remembered_tags_max": 100_000,
    "remembered_chars_max": 32 * MEGA,
    "journal_cache_bytes": 32 * MEGA,
    "filters_bytes_max": 512 * MEGA,
    "message_bytes_max": 5 * MEGA,
    "record_page_bytes_max": 4 * MEGA,
    "record_bytes_max": MEGA,
    "records_per_page_max": 1_000,
    "record_memory_bytes": 1024 * MEGA,
}
CONSTANTS = {
    # of a page
    "crawl.content.html_links.HTML_BYTES_MAX": 16 * MEGA,
    "crawl.content.html_walk.MARKUP_MAX": 1_000_000,
    "crawl.content.tag_parser.TAG_BYTES_MAX": 64 * 1024,
    "crawl.content.html_links.TAGS_MAX": 120_000,
    "crawl.content.html_links.BASES_MAX": 100,
    "crawl.content.html_links.LINKS_CHARS_MAX": 4 * MEGA,
    "crawl.content.simhash.TEXT_BYTES_MAX": MEGA,
    # of other answers of sites
    "crawl.robots.rules.ROBOTS_PARSED_BYTES_MAX": 500 * 1024,
    "crawl.robots.rules.SITEMAPS_MAX": 100,
    "crawl.robots.rules.WILDCARDS_MAX": 1_000,
    "crawl.robots_fetch.ROBOTS_HOPS_MAX": 5,
    "crawl.robots_fetch.TURNS_MAX": 20,
    "crawl.content.sitemap.URLS_CHARS_MAX": 16 * MEGA,
    "crawl.content.sitemap.ELEMENTS_MAX": 1_000_000,
    "crawl.content.sitemap.NESTING_MAX": 64,
    "crawl.content.sitemap.TOKEN_BYTES_MAX": MEGA,
    "crawl.content.sitemap.NAMES_CHARS_MAX": 64 * 1024,
    "crawl.fetch.content_encoding.CODINGS_MAX": 2,
    "crawl.fetch.content_encoding.BROTLI_BYTES_MAX": 8 * MEGA,
    "crawl.fetch.poison_pages.READING_MAX": 256,
    "crawl.fetch.poison_pages.SUSPECTS_MAX": 256,
    "crawl.fetch.fetcher.HEADERS_MAX": 256,
    "crawl.output.page_stream.BUFFERED_BYTES_MAX": 16 * MEGA,
    # of all sites
    "crawl.scope.partitioner.SITES_CACHED_MAX": 50_000,
    "crawl.content.near_duplicates.PAGES_MAX": 200_000,
    "crawl.content.near_duplicates.CHARS_MAX": 20_000_000,
    "crawl.content.near_duplicates.SITES_MAX": 10_000,
    "crawl.scope.query_limits.PATHS_MAX": 100_000,
    # of peers and strangers
    "link.acceptor.HANDSHAKES_MAX": 100,
    "link.server.CONNECTIONS_PER_PEER_MAX": 8,
    "link.server.SERVER_CONNECTIONS_MAX": 4_000,
    "link.admission_control.PEER_BYTES_MAX": 32 * MEGA,
    "link.admission_control.QUESTIONS_BYTES_MAX": 256 * MEGA,
    "link.admission_control.SMALL_BYTES": 4096,
    "link.admission_control.UNSENT_BYTES_MAX": 8 * MEGA,
    "link.admission_control.WAITING_BYTES_MAX": 256 * MEGA,
    "link.admission_control.QUESTIONS_PER_ROUND_MAX": 4,
    "link.server_connection.SEND_S": 30.0,
    "link.client_connection.IN_FLIGHT_MAX": 64,
    "link.wire.basics.DATAGRAM_BYTES_MAX": 1120,
    "link.wire.basics.BATCH_MAX": 500,
    "link.wire.basics.ROWS_MAX": 10_000,
    "link.wire.basics.URL_CHARS_MAX": 8192,
    "link.wire.leave_messages.DEPARTED_MAX": 128,
    "link.peer_score.SOURCES_MAX": 1_000,
    "link.peer_score.REASONS_MAX": 100,
    "members.sealing.CORRESPONDENTS_MAX": 20_000,
    "members.sealing.UNPROVEN_MAX": 5_000,
    "overlay.flood_sampler.NON_MEMBERS_PER_SECOND_MAX": 20_000,
    "overlay.waves.wave.ROWS_BYTES_MAX": 3 * MEGA,
    "replication.owner.work_quota.QUOTA_CELLS_MAX": 400_000,
    "replication.owner.work_quota.PEERS_MAX": 1_000,
    "replication.replicator.QUEUE_MAX": 50_000,
    "store.bloom.cell_filters.FINGERPRINTS_MAX": 250_000,
    "replication.providers.PROVIDERS_MAX": 8,
    "replication.providers.NAMED_MAX": 64,
    "replication.providers.ALL_MAX": 600_000,
    "peer.swarm.state_gossip.WAITING_MAX": 64,
    "crawl.clocks.clock_host.LEAF_QUESTIONS_MAX": 256,
    "peer.swarm.end_check.ASKED_MAX": 32,
    "lending.leaf_host.LEAVES_MAX": 32,
    "lending.loan.LATE_PAGES_MAX": 10_000,
    "peer.membership.key_refusals.LOST_PEERS_MAX": 16,
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_stands_where_it_stands(name: str) -> None:
    assert LIMITS[name] == getattr(Limits(), name)


@cases("name", CONSTANTS)
def test_a_bound_stands_where_it_stands(name: str) -> None:
    module, _, constant = name.rpartition(".")
    assert CONSTANTS[name] == getattr(import_module(f"kadcrawl.{module}"), constant)
