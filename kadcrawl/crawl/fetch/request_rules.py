"""The bounds and headers of a request, by the site rule for its URL. A decision: no I/O, no clock.

A site rule lowers the limits of the machine and never raises them, as the memory of a machine is its owner's to give.
"""

from dataclasses import dataclass, replace

from kadcrawl.settings.limits import Limits
from kadcrawl.settings.site_rules import SiteRule
from kadcrawl.settings.site_settings import SiteSettings


@dataclass(frozen=True, slots=True)
class RequestRule:
    """The bounds of the requests to some hosts."""

    limits: Limits


class RequestRules:
    """The bounds of all requests of one peer."""

    def __init__(self, limits: Limits, site_settings: SiteSettings | None = None) -> None:
        """`limits` are those of the machine. Without `site_settings` they hold for every URL."""
        self._site_settings = site_settings
        self._plain = RequestRule(limits)
        self._by_site_rule: dict[int, RequestRule] = {}
        """The rules made so far, by the identity of their site rule, which lives as long as the job."""

    def of(self, url: str) -> RequestRule:
        """Return the rule for the request of a canonical URL."""
        site_rule = self._site_settings.rule(url) if self._site_settings is not None else None
        if site_rule is None:
            return self._plain
        made = self._by_site_rule.get(id(site_rule))
        if made is None:
            made = self._by_site_rule[id(site_rule)] = self._made(site_rule)
        return made

    def _made(self, rule: SiteRule) -> RequestRule:
        limits = self._plain.limits
        return RequestRule(
            replace(
                limits,
                body_bytes_max=min(limits.body_bytes_max, rule.body_bytes_max or limits.body_bytes_max),
                fetch_timeout_s=min(limits.fetch_timeout_s, rule.fetch_timeout_s or limits.fetch_timeout_s),
            )
        )
