"""Fuzzing of text from users and pages: URLs, job files, lists of proxies."""

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import get_args

import msgspec

from fuzz.target import Bites, Target
from kadcrawl.crawl.content.canonical_link import simplicity
from kadcrawl.crawl.proxies.page_proxies import page_proxies
from kadcrawl.crawl.robots.rules import Rules
from kadcrawl.crawl.scope.sitemap_urls import named_like_one
from kadcrawl.crawl.scope.traps import Traps, without_session
from kadcrawl.errors import ConfigError
from kadcrawl.keys import ID_BYTES, site_hash, url_key
from kadcrawl.settings import job_file, proxy_list
from kadcrawl.settings.job import Job
from kadcrawl.urls import URL_CHARS_MAX, Partition, canonical, host_of, origin_of, path_of, seed, site_of

BASES = ("http://a.example/b/c?d", "https://[::1]:8080/", "http://xn--bcher-kva.example./x/../y")
TRAPS = Traps(Job())
RULES = Rules(rules=((False, "/*x"), (True, "/a$"), (False, "/b")))

# --- URLs --------------------------------------------------------------------------------------------------------


def urls(data: bytes) -> None:
    """Read a text as the href of a page and as a seed, and compute all properties of its URL."""
    bites = Bites(data)
    base = BASES[bites.number() % len(BASES)]
    # As a terminal's bytes come to us; a page has no lone surrogates.
    text = bites.rest().decode("utf-8", "surrogateescape")
    for url in (canonical(text), canonical(text, base), _seed(text)):
        if url is not None:
            _ask(url)


def _seed(text: str) -> str | None:
    try:
        return seed(text)
    except ConfigError as error:
        assert str(error)
        return None


def _ask(url: str) -> None:
    assert canonical(url) == url, f"{url!r} is not its own canonical form, but {canonical(url)!r}"
    assert canonical(url, BASES[0]) == url
    assert url.isascii()
    assert len(url) <= URL_CHARS_MAX
    assert url == origin_of(url) + path_of(url)
    assert host_of(url) in origin_of(url)
    for partition in get_args(Partition):
        site = site_of(url, partition)
        assert len(url_key(site_hash(site), url)) == ID_BYTES
    plain = without_session(url)
    assert canonical(plain) == plain
    assert without_session(plain) == plain or len(plain) < len(url)
    TRAPS.why_not(url)
    simplicity(url)
    named_like_one(url)
    RULES.allowed(url)
    # What the job says of its seeds is what it takes them for.
    assert Job(seeds=(url,)).seeds == (url,)


def hrefs() -> Iterator[bytes]:
    """Yield a link of each shape there is."""
    for text in (
        "http://a.example/",
        "HTTPS://User:Pass@Bücher.Example:443/%7e/%c3?%e9#f",
        "../x/./y;p?q=1&r#s",
        "//b.example:080?",
        "?a=b",
        "#",
        "http://0x7f.1/",
        "http://[2001:DB8::0001]:80/x",
        "http://a.example./../..//b",
        "http:\\\\a.example\\b",
        "http://a.example/s;jsessionid=0123456789abcdef?sid=0123456789abcdef0123456789&x=1",
        "http://a.example/(S(0123456789abcdefghijklmn))/x.aspx?PHPSESSID=0123456789abcdef",
        "javascript:alert(1)",
        "example.org/x",
        "mailto:a@b.example",
        "ht\ntp://a.example/\t",
        "http://日本語.example/道?筋",
        "http://a.co.uk/a/b/a/b/a/b/a/b/a/b",
    ):
        yield b"\0" + text.encode()
    yield b"\0http://a.example/\xff\xfe"


# --- job files ---------------------------------------------------------------------------------------------------


def job(data: bytes) -> None:
    """Read a job file. A valid job must reach a joiner unchanged."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    if "/dev/" in text or "/proc/" in text:
        return  # It may name a file of proxies, and these have no end.
    try:
        read = job_file.parse(text, Path("job.toml"))
    except ConfigError as error:
        assert str(error)
        return
    packed = msgspec.msgpack.encode(read.job)
    assert msgspec.msgpack.decode(packed, type=Job) == read.job, "a job changes on its way"
    assert set(read.values) == set(read.said)


def job_files() -> Iterator[bytes]:
    """Yield a job file with each key alone, and two with tables."""
    values = {str: '"x"', bool: "true", int: "3", float: "1.5"}
    defaults = Job()
    for key, (name, _) in job_file.KEYS.items():
        default = getattr(defaults, name)
        yield f"{key} = {values.get(type(default), '3')}\n".encode()
        yield f'{key} = ["http://a.example/", "b"]\n'.encode()
    yield (
        b'seeds = ["https://www.example.org/"]\nscope = "domain"\nmax-depth = 5\nrecrawl-after = "7 days"\n'
        b'sinks = ["sqlite:r.db"]\n[[roles]]\npattern = \'/list\'\nrole = "next_link"\n'
        b'[[records]]\npattern = "/item"\n[records.fields]\ntitle = "css:h1"\n'
    )
    yield b'history = "bloom"\ngrain = "1 day"\nrecrawl-after = "7 days"\nproxies = "http://p.example/list"\n'


# --- proxies -----------------------------------------------------------------------------------------------------


def proxies(data: bytes) -> None:
    """Read a list of proxies, and the same text as a web page. Each proxy is read again from its own URL, and shown
    without its password. A page names proxies by address only."""
    text = data.decode("utf-8-sig", "replace")
    for number, one in proxy_list.lines(text):
        assert number >= 1
        _ask_proxy(one)
    for one in page_proxies(text):
        _ask_proxy(one)
        assert isinstance(one, ConfigError) or ip_address(one.host)


def _ask_proxy(one: proxy_list.Proxy | ConfigError) -> None:
    if isinstance(one, ConfigError):
        assert str(one)
        return
    assert proxy_list.parse(one.url) == one, "a proxy is not what its URL says"
    assert one.relays("http://a.example/") in (True, False)
    shown = f"{one} {one!r}"
    assert f":{one.password}@" not in shown


def proxy_lists() -> Iterator[bytes]:
    """Yield lists with each scheme, credentials, addresses and faults."""
    yield b"# ours\nhttp://203.0.113.7:3128\nhttps://u%40:p%23w@proxy.example/ # two\n\nsocks5h://[2001:db8::1]:1080\n"
    yield b"<table><tr><td>203.0.113.7<td>80<td>SOCKS5<tr><td><b>[::1]</b>:3128</table>http://u:p@203.0.113.8:1&#49;<!--"
    yield b"203.0.113.7:3128\nftp://x\nhttp://:p@h\nhttp://h:0\nhttp://h:99999\nsocks5://[::g]\nhttp://u:\xc3\xa9@h\n"


TARGETS = (
    Target("urls", urls, hrefs, bytes_max=1024),
    Target("job", job, job_files, bytes_max=2048),
    Target("proxies", proxies, proxy_lists, bytes_max=2048),
)
