"""The scene of a trial: the web, its expected result, the job, and the peers' limits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kadcrawl.settings.job import Job
from kadcrawl.settings.limits import Limits

from .judge import Expected
from .site_treatment import SiteTreatment
from .synthetic_web import SyntheticResponse


class ServedWeb(Protocol):
    """A web that can be served."""

    def address(self, host: str) -> str | None:
        """Return the IP address that serves a host, or None if there is no such host."""
        ...

    def answer(self, host: str, target: str, asked: int) -> SyntheticResponse:
        """Return the answer to a GET of `target` that was asked for `asked` times before."""
        ...


class KnownWeb(ServedWeb, Protocol):
    """A web with the result of a correct crawl."""

    def truth(self, retries: int) -> Mapping[str, Expected]:
        """Return the fetches of a correct crawl, without robots.txt: URL -> expected result."""
        ...

    def disallowed(self) -> Collection[str]:
        """Return the URLs that are linked and that robots.txt forbids."""
        ...

    def delays(self, delay_s: float) -> Mapping[str, float]:
        """Return the seconds between two requests to each origin, for a crawl with a job's delay of `delay_s`."""
        ...

    @property
    def origins(self) -> Sequence[str]:
        """``http://host`` of each site."""
        ...

    @property
    def trails(self) -> Sequence[Sequence[str]]:
        """Chains of URLs. Only the page before links to each of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything of a trial that is not in its plan."""

    web: KnownWeb
    job: Job
    """The job, with its seeds."""
    streamed: Sequence[str] = ()
    """Further seeds, streamed by the first machine. The swarm fetches nothing before."""
    treatments: Mapping[str, SiteTreatment] = field(default_factory=dict)
    """``http://host`` -> the rule of the job for this site."""
    added: Sequence[str] = ()
    """``http://host`` of each site that the job leaves out until a person brings it into scope."""
    optional: Mapping[str, Expected] = field(default_factory=dict)
    """The result of each URL of a site of which only some are crawled."""
    refused: Sequence[str] = ()
    """URLs whose sites refuse every request."""
    limits: Limits
    work_area: int | None = None
    """The work area of each peer (`Config.work_area`)."""
