"""httpbin, run locally: redirects, content encodings, statuses, robots.txt and a slow body of a real server."""

import threading
from collections.abc import Iterator

import httpbin
import pytest
from werkzeug.serving import make_server

from tests.support.sites.finished_crawl import CrawlToTheEnd

LINKED_PAGES = 20
FOUND = {
    "/redirect/3": 302,
    "/relative-redirect/2": 302,
    "/relative-redirect/1": 302,
    "/get": 200,
    "/absolute-redirect/2": 302,
    "/absolute-redirect/1": 302,
    "/redirect-to?url=/html&status_code=307": 307,
    "/html": 200,
    "/gzip": 200,
    "/brotli": 200,
    "/deflate": 200,
    "/status/404": 404,
    "/status/410": 410,
    "/status/204": 204,
    "/drip?duration=1&numbytes=50&delay=0": 200,
    "/encoding/utf8": 200,
    **{f"/links/{LINKED_PAGES}/{number}": 200 for number in range(LINKED_PAGES)},
}
SEEDS = (
    *("/redirect/3", "/absolute-redirect/2", "/redirect-to?url=/html&status_code=307"),
    *("/gzip", "/brotli", "/deflate", "/status/404", "/status/410", "/status/204"),
    *("/drip?duration=1&numbytes=50&delay=0", "/encoding/utf8", f"/links/{LINKED_PAGES}/0", "/deny"),
)
SIZES = {
    "/html": 3741,
    "/drip?duration=1&numbytes=50&delay=0": 50,
    "/encoding/utf8": 14239,
    "/status/204": 0,
}


@pytest.fixture
def origin() -> Iterator[str]:
    """httpbin's own WSGI application on an address of its own."""
    server = make_server("127.0.0.9", 0, httpbin.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="httpbin")
    thread.start()
    try:
        yield f"http://{server.host}:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_each_answer_ends_in_its_one_outcome(origin: str, crawl_to_the_end: CrawlToTheEnd) -> None:
    crawl = crawl_to_the_end([origin + path for path in SEEDS], 2)

    lines = {line.url.removeprefix(origin): line for line in crawl.lines}
    assert len(lines) == len(crawl.lines), "a URL has two lines"
    assert {path: line.status for path, line in lines.items() if line.status is not None} == FOUND
    assert {path: line.failed for path, line in lines.items() if line.status is None} == {"/deny": "robots"}
    assert {path: lines[path].fields["bytes"] for path in SIZES} == SIZES
    assert all(lines[path].failed is None for path in ("/gzip", "/brotli", "/deflate"))
