"""Odd servers: redirects, refreshes, wishes of pages, and certificates."""

from typing import Final

from scripts.odd_servers.behaviors import PAGE, Behavior, Topic, html, length, moved

_NEXT: Final = {"next": html()}
_TO_NEXT: Final = "302, to `next`"

REDIRECTS: Final = Topic(
    "redirect",
    "Redirects",
    "kadcrawl does not follow a redirect at once: its target is a link for the owner of the target, with a line of its "
    "own. curl was asked to follow (`-L`).",
    (
        Behavior(
            "a relative Location",
            (moved(b"next"),),
            _TO_NEXT,
            "follows (Fetch, HTTP-redirect fetch)",
            "target",
            more=_NEXT,
        ),
        Behavior(
            "a Location with a fragment",
            (moved(b"next#top"),),
            _TO_NEXT,
            "follows (Fetch, location URL)",
            "target",
            more=_NEXT,
        ),
        Behavior(
            "a Location with blanks around it",
            (moved(b" \t next \t "),),
            _TO_NEXT,
            "follows (Fetch, header value)",
            "target",
            more=_NEXT,
        ),
        Behavior(
            "a Location in UTF-8 without escapes",
            (moved("nächst".encode()),),
            "302, to `n%C3%A4chst`",
            "follows (Fetch, location URL)",
            "target",
            more={"n%C3%A4chst": html()},
        ),
        Behavior(
            "308",
            (moved(b"next", status=308),),
            "308, to `next`",
            "follows (Fetch, redirect status)",
            "target",
            more=_NEXT,
        ),
        Behavior(
            "300 with a Location",
            (moved(b"next", status=300),),
            "300, empty",
            "shows the answer (Fetch, redirect status)",
            more=_NEXT,
        ),
        Behavior(
            "200 with a Location",
            (html(b"Location: next"),),
            "200, links: `b`",
            "shows the page (Fetch, redirect status)",
            "links",
            more=_NEXT,
        ),
        Behavior(
            "301 without a Location",
            (b"HTTP/1.1 301 Moved\r\nContent-Length: 5\r\n\r\nhello",),
            "301, `hello`",
            "shows the answer (Fetch, HTTP-redirect fetch)",
        ),
        Behavior(
            "two Locations that differ",
            (moved(b"next", b"Location: other"),),
            _TO_NEXT,
            "fails (Fetch, location URL)",
            "target",
            more=_NEXT,
        ),
        Behavior(
            "an empty Location",
            (moved(b""),),
            "302, fails: `redirect_loop`",
            "fails after 20 (Fetch, HTTP-redirect fetch)",
            "target",
        ),
        Behavior(
            "a redirect to itself",
            (moved(b"."),),
            "302, fails: `redirect_loop`",
            "fails after 20 (Fetch, HTTP-redirect fetch)",
            "target",
        ),
        Behavior(
            "a redirect to itself with a cookie",
            (moved(b".", b"Set-Cookie: a=b"),),
            "302, fails: `cookie_wall`",
            "sends the cookie back, and here fails after 20 (Fetch)",
            "target",
        ),
        Behavior(
            "a Location that is no URL",
            (moved(b"http://["),),
            "302, fails: `bad_redirect`",
            "fails (Fetch, location URL)",
            "target",
        ),
        Behavior(
            "a Location with another scheme",
            (moved(b"ftp://example.org/"),),
            "302, fails: `bad_redirect`",
            "fails (Fetch, HTTP-redirect fetch)",
            "target",
        ),
    ),
)

PAGES: Final = Topic(
    "page",
    "Refreshes, and wishes of pages",
    "Links that say nofollow are counted and left out, unless the job ignores that (`--nofollow`).",
    (
        Behavior(
            "a meta refresh",
            (html(body=b"<meta http-equiv=refresh content='0;url=b'>"),),
            "200, links: `b`",
            "goes there (HTML, shared declarative refresh steps)",
            "links",
        ),
        Behavior(
            "a `Refresh` header",
            (html(b"Refresh: 0; url=b", body=b""),),
            "200, links: `b`",
            "goes there (HTML, shared declarative refresh steps)",
            "links",
        ),
        Behavior(
            "`Refresh: 5`, without a URL", (html(b"Refresh: 5"),), "200, links: `b`", "loads the page again", "links"
        ),
        Behavior(
            "`rel=nofollow`",
            (html(body=b"<a rel='noopener NoFollow' href=b>b</a><a href=c>c</a>"),),
            "200, links: `c`",
            "is no crawler",
            "links",
        ),
        Behavior(
            "`X-Robots-Tag: nofollow`", (html(b"X-Robots-Tag: nofollow"),), "200, no links", "is no crawler", "links"
        ),
        Behavior(
            "`X-Robots-Tag: otherbot: nofollow`",
            (html(b"X-Robots-Tag: otherbot: nofollow"),),
            "200, links: `b`",
            "is no crawler",
            "links",
        ),
        Behavior(
            "a base element on another folder",
            (html(body=b"<base href=sub/>" + PAGE),),
            "200, links: `sub/b`",
            "resolves with it (HTML, base element)",
            "links",
        ),
        Behavior(
            "a link in a comment",
            (html(body=b"<!-- <a href=no>no</a> -->" + PAGE),),
            "200, links: `b`",
            "sees no link (HTML 13.2.5)",
            "links",
        ),
        Behavior(
            "a link with white space in it",
            (html(body=b"<a href=' \nb\t'>b</a>"),),
            "200, links: `b`",
            "removes it (URL, basic URL parser)",
            "links",
        ),
        Behavior(
            "a backslash for a slash",
            (html(body=b"<a href='sub\\b'>b</a>"),),
            "200, links: `sub/b`",
            "reads a slash (URL, basic URL parser)",
            "links",
        ),
    ),
)

_HELLO: Final = (length(5) + b"hello",)

TLS: Final = Topic(
    "tls",
    "TLS",
    "kadcrawl refuses what a browser refuses. Scrapy verifies no certificate by default.",
    (
        Behavior("a good certificate", _HELLO, "200, `hello`", "shows it (RFC 9110 4.3.4)", tls="good"),
        Behavior("an expired certificate", _HELLO, "fails: `tls_expired`", "fails (RFC 5280 6.1)", tls="expired"),
        Behavior(
            "a self-signed certificate", _HELLO, "fails: `tls_self_signed`", "fails (RFC 5280 6.1)", tls="self-signed"
        ),
        Behavior(
            "a certificate for another host", _HELLO, "fails: `tls_name`", "fails (RFC 9110 4.3.4)", tls="wrong name"
        ),
        Behavior(
            "a certificate of an unknown authority",
            _HELLO,
            "fails: `tls_unknown_ca`",
            "fails (RFC 5280 6.1)",
            tls="unknown authority",
        ),
        Behavior(
            "no TLS behind https",
            (b"HTTP/1.1 400 Bad Request\r\n\r\n",),
            "fails: `tls`",
            "fails (RFC 9110 4.3.4)",
            tls="none",
        ),
    ),
)
