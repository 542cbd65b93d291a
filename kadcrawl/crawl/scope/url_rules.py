"""The rules of a job for the form of URLs: session IDs and named parameters are taken out, and queries are sorted.

They are applied to each link where it enters the crawl, after its canonical form, so no later step meets another form.
The rules travel with the job, so all peers give a URL the same form, and so the same owner. A seed stays as it was
given, as somebody asked for it. A decision: no I/O, no clock.

Tests: tests/crawl/scope/test_url_rules.py
"""

import re
from typing import Literal

from kadcrawl.crawl.scope.traps import without_session
from kadcrawl.settings.job import Job
from kadcrawl.settings.parameter_sets import parameters_of

TakenOut = Literal["parameters", "session_id"]
"""The causes for which a link is followed in a shorter form."""


class UrlRules:
    """The rules of one job."""

    def __init__(self, job: Job) -> None:
        self.strips_sessions = job.session_ids == "strip"
        self._sorts = job.sort_query
        names = [".*".join(map(re.escape, name.split("*"))) for name in parameters_of(job.strip_parameters)]
        # The letters' case does not matter: some links have UTM_Source.
        self._stripped = re.compile("|".join(names), re.IGNORECASE) if names else None

    def plain(self, url: str) -> str:
        """Return a canonical URL in the form of the rules, or the same URL if that has it already."""
        if self.strips_sessions:
            url = without_session(url)
        return self._with_plain_query(url)

    def cause(self, url: str) -> TakenOut | None:
        """Return what is taken out of a canonical URL, or None for a URL that is only sorted."""
        if self.stripped(url):
            return "parameters"
        return "session_id" if self.strips_sessions and without_session(url) != url else None

    def stripped(self, url: str) -> tuple[str, ...]:
        """Return the names of the parameters of a canonical URL that are taken out by name."""
        query = url.partition("?")[2]
        return tuple(dict.fromkeys(filter(self._is_stripped, map(_name, query.split("&"))))) if query else ()

    def _is_stripped(self, name: str) -> bool:
        return self._stripped is not None and self._stripped.fullmatch(name) is not None

    def _with_plain_query(self, url: str) -> str:
        if "?" not in url or (self._stripped is None and not self._sorts):
            return url
        path, _, query = url.partition("?")
        parts = given = query.split("&")
        if self._stripped is not None:
            parts = [part for part in parts if not self._is_stripped(_name(part))]
        if self._sorts:
            # Parameters of one name keep their order, which may mean something.
            parts = sorted(filter(None, parts), key=_name)
        if parts == given:
            return url
        return f"{path}?{'&'.join(parts)}" if any(parts) else path


def _name(part: str) -> str:
    return part.partition("=")[0]
