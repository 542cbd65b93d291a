"""A web of blogs with a page of links for each day or hour, which leads to posts that were there before (P4 4)."""

from dataclasses import dataclass
from random import Random

from ..synthetic_web import SyntheticResponse
from ..trial import WEB_ADDRESS
from .alike_web import HTML

ROBOTS_PATH = "/robots.txt"


@dataclass(frozen=True, slots=True)
class BlogWeb:
    """Blogs with new posts each day. The list of a day leads to all posts so far."""

    blogs: int
    posts: int
    """New posts of each blog on a day."""

    def address(self, host: str) -> str | None:
        """Return the IP of a host name."""
        return WEB_ADDRESS if host.endswith(".test") else None

    def seeds(self, day: int) -> list[str]:
        """Return the lists of a day."""
        return [f"http://blog{blog}.test/list/{day}" for blog in range(self.blogs)]

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target`."""
        _, kind, *rest = target.split("/")
        if kind != "list":
            return SyntheticResponse(404) if target == ROBOTS_PATH else SyntheticResponse(200, HTML, b"<p>")
        days = range(1, int(rest[0]) + 1)
        return page_of([f"/post/{day}/{number}" for day in days for number in range(self.posts)])


@dataclass(frozen=True, slots=True)
class SearchWeb:
    """A search page of each hour, with links drawn from news that drift by: half of them are there an hour later.

    A page that is asked for again, when its hour is over, has no links.
    """

    seed: int
    links: int
    """Links of a page."""

    def address(self, host: str) -> str | None:
        """Return the IP of a host name."""
        return WEB_ADDRESS if host.endswith(".test") else None

    def seeds(self, hour: int) -> list[str]:
        """Return the search page of an hour."""
        return [f"http://news.test/list/{hour}"]

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target`."""
        _, kind, *rest = target.split("/")
        if kind != "list":
            return SyntheticResponse(404) if target == ROBOTS_PATH else SyntheticResponse(200, HTML, b"<p>")
        if asked:
            return page_of([])
        first = int(rest[0]) * self.links // 2
        found = Random(f"search {self.seed} {target}").sample(range(first, first + 2 * self.links), self.links)
        return page_of([f"/post/{number}" for number in found])._replace(counted=True)


def page_of(links: list[str]) -> SyntheticResponse:
    """Return a page with these links."""
    return SyntheticResponse(200, HTML, "".join(f'<a href="{link}">' for link in links).encode())
