"""A web of identical sites that answers each page after the same time. Only the crawler limits the speed."""

from dataclasses import dataclass

from ..synthetic_sites import draws
from ..synthetic_web import SyntheticResponse
from ..trial import WEB_ADDRESS

HTML = (("Content-Type", "text/html; charset=utf-8"),)
LINKS_OF_HUB = 200


@dataclass(frozen=True, slots=True)
class AlikeWeb:
    """`sites` sites of `pages` pages each, or endless sites for None. Each answer takes `answer_s` seconds."""

    seed: int
    sites: int
    answer_s: float
    pages: int | None = None

    @property
    def seeds(self) -> tuple[str, ...]:
        """The hubs."""
        return tuple(f"http://hub{number}.test/" for number in range(-(-self.sites // LINKS_OF_HUB)))

    def address(self, host: str) -> str | None:
        """Return the IP of a host name."""
        return WEB_ADDRESS if host.endswith(".test") else None

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target`."""
        if target == "/robots.txt":
            return SyntheticResponse(404)
        if host.startswith("hub"):
            first = int(host.removeprefix("hub").removesuffix(".test")) * LINKS_OF_HUB
            links = [f"http://{self._host(site)}/" for site in range(first, min(first + LINKS_OF_HUB, self.sites))]
        elif self.pages is not None:
            links = [f"/{page}" for page in range(1, self.pages)] if target == "/" else []
        else:
            own, other, site = draws(f"{self.seed} {host} {target}", 3)
            links = [f"/{own:016x}", f"http://{self._host(site % self.sites)}/{other:016x}"]
        body = "".join(f'<a href="{link}">' for link in links).encode()
        return SyntheticResponse(200, HTML, body, latency_s=self.answer_s)

    def _host(self, site: int) -> str:
        return f"site{site}.test"
