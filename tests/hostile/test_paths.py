"""No name that a site, a page or a job gives becomes a path: files have names of our own, where they belong."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from aiohttp import web
from warcio.archiveiterator import ArchiveIterator

from kadcrawl.crawl.output.warc import WarcWriter, warc_name
from kadcrawl.urls import canonical
from tests.support.sites.foreign_addresses import CrawlSeeds
from tests.support.sites.web import Web, html

JOBS = {
    "up": "../../../escaped",
    "root": "/etc/passwd",
    "dots": "..",
    "dot": ".",
    "backslashes": "..\\..\\escaped",
    "drive": "C:\\escaped",
    "stream": "escaped:stream",
    "NUL": "a\0b",
    "lines": "a\r\nWARC-Type: response\r\n\r\nb",
    "escape sequence": "\x1b[2J",
    "right to left": "\u202ezg.craw",
    "home": "~root/escaped",
    "variable": "$HOME`id`",
    "option": "-rf",
    "glob": "*?[a]",
    "device": "CON",
    "long": "x" * 100,
    "long of several bytes": "크" * 100,
    "blank": " ",
}
SAFE = re.compile(r"kadcrawl-[A-Za-z0-9_.-]{1,100}-01234567")


@pytest.mark.parametrize("name", JOBS)
def test_a_job_names_files_and_no_directories(name: str, tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b" / "c" / "warc"
    info = {"isPartOf": JOBS[name]}
    writer = WarcWriter.open(
        directory, warc_name(JOBS[name], "01234567"), None, info=info, bytes_max=9, random=Random(1), now=lambda: 0.0
    )
    writer.close()
    (made,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert (directory, f"{made.name.removesuffix('-00001.warc.gz')}-00001.warc.gz") == (made.parent, made.name)
    assert SAFE.fullmatch(made.name.removesuffix("-00001.warc.gz"))
    with made.open("rb") as stream:
        (record,) = ArchiveIterator(stream)
    assert ("warcinfo", made.name) == (record.rec_type, record.rec_headers.get_header("WARC-Filename"))


HOSTS = [
    "..",
    "a/../../b",
    "a\\..\\b",
    "%2e%2e%2f",
    "..%2f..",
    "a\0b",
    "~",
    "a:b",
    "-",
    "a/b@c",
    "..%5c",
    "[::1%/../x]",
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_has_no_slash_that_anybody_could_follow(host: str) -> None:
    url = canonical(f"http://{host}/")
    if url is not None:
        assert not set("/\\\0%@") & set(url.removeprefix("http://").partition("/")[0])


PATHS = [
    "/../../../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/shadow", "/..\\..\\windows\\win.ini",
    "/....//....//etc/hosts", "/x%00.html", "/x%0d%0ay", "/" + "x" * 1_500, "/con", "/x;rm%20-rf%20~", "/~root", "/-rf",
    "/?../../../../etc/group", "/x#/../../../etc/fstab", "/%F0%9F%92%A9",
]  # fmt: skip
DISPOSITIONS = [
    'attachment; filename="../../../escaped"', "attachment; filename=/etc/passwd",

    'attachment; filename="..\\\\escaped"',
    "attachment; filename*=UTF-8''%2e%2e%2fescaped", "inline; filename=.bashrc",
]  # fmt: skip
OURS = re.compile(
    r"peer/(pages\.jsonl|lock|reading|address|peer\.sqlite(-wal|-shm)?)"
    r"|peer/warc/kadcrawl-[A-Za-z0-9_.-]+-[0-9a-f]{8}-\d{5}\.warc\.gz"
    r"|archive/kadcrawl-[A-Za-z0-9_.-]+-[0-9a-f]{8}-\d{5}\.warc\.gz|out/pages/[0-9a-f]{16}-\d{15}-\d{15}\.jsonl"
)


def relative_files(directory: Path) -> Iterator[str]:
    return (str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


async def test_a_crawl_leaves_its_own_files_whatever_a_site_names(crawl: CrawlSeeds, tmp_path: Path) -> None:
    def answer(request: web.BaseRequest) -> web.StreamResponse:
        disposition = DISPOSITIONS[len(request.path) % len(DISPOSITIONS)]
        return web.Response(
            body=b"x", headers={"Content-Disposition": disposition, "Content-Location": "../../escaped"}
        )

    async with Web() as site:
        site.pages["/"] = lambda request: html(*PATHS)
        site.fallback = answer
        lines = await crawl(site.url(), name=JOBS["up"], sinks=(f"jsonl:{tmp_path}/out", f"warc:{tmp_path}/archive"))
    urls = {canonical(path, site.url()) for path in PATHS} | {site.url()}
    assert (urls, {None}) == (set(lines), {line.failed for line in lines.values()})
    unknown = [name for name in relative_files(tmp_path) if not OURS.fullmatch(name)]
    assert [] == unknown
    assert {"peer", "out", "archive"} == {path.name for path in tmp_path.iterdir()}
    above = [path.name for directory in tmp_path.parents[:2] for path in directory.iterdir()]
    assert not any("escaped" in name or "passwd" in name for name in above)
    for part in (tmp_path / "out" / "pages").iterdir():
        assert urls >= {json.loads(line)["url"] for line in part.read_bytes().splitlines()}
