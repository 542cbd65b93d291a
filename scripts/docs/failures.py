"""The meanings of the reasons in `failed` of a page line, and of the names in `links_left_out`.

A test compares them with the reasons in the code. Tests: tests/docs/test_schemas.py
"""

FAILURES = {
    "http_404": "The server answered with this status: `http_` and any status from 400 up.",
    "robots": "The robots.txt of the site forbids the URL. No request was made for it.",
    "robots_unreachable": "The robots.txt of the site could not be read, so nothing of the site is fetched (RFC 9309).",
    "address_refused": "The host is at an address that is neither public nor allowed by --allow-network.",
    "dns": "The name of the host could not be looked up.",
    "connect": "The connection was refused, could not be routed, or was not made in time.",
    "tls": "The TLS handshake failed, or the certificate is refused for another reason than the next four.",
    "tls_expired": "The certificate of the host has expired, or is not valid yet, by the clock of this machine.",
    "tls_self_signed": "The certificate of the host is signed by itself.",
    "tls_name": "The certificate is for other hosts.",
    "tls_unknown_ca": "No authority that this machine trusts has signed the certificate. The server may send too few "
    "certificates: browsers then fetch the missing ones, and kadcrawl does not.",
    "disconnected": "The connection was closed or reset before the head of the response was complete.",
    "protocol": "The response is not HTTP, or broken HTTP.",
    "headers_too_large": "The headers of the response are above header_bytes_max, or too many.",
    "timeout": "The response was not complete after fetch_timeout_s.",
    "idle": "The server was silent for idle_timeout_s in the middle of the response.",
    "too_slow": "The body came slower than rate_min_bytes_s on average, after rate_grace_s.",
    "truncated": "The connection ended in the middle of the body, or a compressed body had no end.",
    "kept_waiting": "The same, while the peer had no room for a large body. The server may have given up.",
    "body_too_large": "The body was cut off at body_bytes_max. The WARC has the first part.",
    "bad_encoding": "The Content-Encoding was not offered, or the bytes are not in that coding.",
    "inflated_too_large": "The body is above inflated_bytes_max after decompression.",
    "no_memory": "The body was cut off at held_bytes_max, which --memory sets. The WARC has the first part.",
    "inflated_no_memory": "The body is above held_bytes_max after decompression.",
    "bad_url": "The URL cannot be requested, for example because of the name of its host.",
    "bad_redirect": "A redirect leads to a target that is no URL of the web.",
    "redirect_limit": "The redirects that led here are as many as redirects_max, and the next one is not followed.",
    "redirect_loop": "The redirect leads to a URL that redirected here, or to itself. Each URL of the loop was fetched "
    "once.",
    "cookie_wall": "The same, and the answer sets a cookie, without which the site shows nothing.",
    "seed_left_scope": "A seed redirects to a URL that the job does not crawl. `detail` says what to do.",
    "bad_sitemap": "The sitemap or feed cannot be read to its end. URLs before the fault were followed.",
    "site_refused": "The site refused as many requests in a row as --refusals says, with 429 or 503. No request was "
    "made for the URL.",
    "killed_peer": "A peer crashed twice while it read the page, so it is not read again.",
    "internal_error": "A fault of kadcrawl. The log has a traceback. Please report it.",
    "scope": "The URL is outside the scope, by the seeds that this peer knows.",
    "exclude": "The URL matches an exclude pattern.",
    "include": "The URL matches no include pattern.",
    "login_failed": "The site could not be logged in to by its form or hook in three tries. The URL was not requested.",
    "site_off": "A rule of [[sites]] leaves the site of the URL out of the crawl.",
    "scope_removed": "A person took the URL out of the scope by `kadcrawl scope remove` while the crawl ran.",
    "site_dropped": "The URL was pending when a person dropped the pending URLs of its site by `kadcrawl site drop`.",
    "site_excluded": "A person excluded the site while the crawl ran. `kadcrawl site include` lifts that order.",
    "proxy_judge": "The URL is on the site of --proxy-judge, which is not crawled.",
    "length": "The URL is longer than url_chars_max.",
    "depth": "The URL is further from the seeds than --max-depth.",
    "path_segments": "The path has more segments than --max-path-segments.",
    "path_repeats": "The path repeats itself more often than --max-path-repeats.",
    "query_parameters": "The query has more parameters than --max-parameters.",
}
"""The meaning of each reason.

The reasons from `scope` on are for URLs of other peers, or of an earlier run with another job."""

LEFT_OUT = {
    "length": "Links to URLs longer than url_chars_max.",
    "depth": "Links further from the seeds than --max-depth.",
    "path_segments": "Links with more segments in their path than --max-path-segments.",
    "path_repeats": "Links whose path repeats itself more often than --max-path-repeats.",
    "query_parameters": "Links with more parameters in their query than --max-parameters.",
    "site_pages": "Links beyond the --max-site-pages of their site.",
    "path_queries": "Links beyond the --max-path-queries of their path.",
    "links_per_page": "Links of a page or a sitemap beyond links_per_page_max, sitemap_urls_max, or the bytes and "
    "characters that are read of it.",
    "session_id": "Links that were followed without their session IDs.",
    "parameters": "Links that were followed without parameters that --strip-parameters names.",
    "canonical": "Links of pages that count as redirects to their canonical URL.",
    "nofollow": "Links in scope that were not followed, as the link or its page says nofollow.",
    "twins": "Links of near duplicates that were left to an earlier page.",
}
