"""A page as the fetcher returns it."""

from datetime import UTC, datetime

from kadcrawl.crawl.fetch.result import FetchResult

PAGE = FetchResult(
    url="http://127.0.0.1:8000/a?b=%C3%A9",
    status=200,
    error=None,
    detail="",
    request_head=b"GET /a?b=%C3%A9 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: kadcrawl/0.1\r\n\r\n",
    http_version="1.1",
    reason="OK",
    headers=((b"Content-Type", b"text/html"), (b"X-Odd", b"\xe9\xff"), (b"x-odd", b"again")),
    body=b"<p>hello</p>",
    content=b"<p>hello</p>",
    content_type="text/html",
    mime="text/html",
    retry_after_s=None,
    address="127.0.0.1",
    started_at=datetime(2026, 1, 2, 3, 4, 5, 67, UTC),
    seconds=0.1,
    first_byte_at=0.0,
)
