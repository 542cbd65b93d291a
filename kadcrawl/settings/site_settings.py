"""The settings of each site, by the job and its site rules. A decision: no I/O, no clock.

A lookup takes as many steps as the host has labels, however many rules there are. A site is named as `urls.site_of`
names it, by a host, a registered domain, or a URL. With partition `domain` the hosts of a domain share one clock: the
clock has the delay of the host that was asked last, and before the first request that of the rule for the domain.
"""

from kadcrawl.settings.host_matches import most_specific
from kadcrawl.settings.job import Job
from kadcrawl.settings.proxy_list import DIRECT
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_rules import EVERY, SiteRule, recrawl_bounds_s
from kadcrawl.settings.steering import Steering
from kadcrawl.urls import site_of


class SiteSettings:
    """The settings of all sites of one job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._job_delay_max_s = _delay_max_s(job)
        self.steering = Steering(job.partition)
        """The orders of a person that are in force."""
        self._by_match = {match: rule for rule in job.sites for match in rule.match}
        self._every = self._by_match.get(EVERY)
        self._keepers = _keepers(job) if job.partition == "domain" else None
        """With partition `domain`, the domains and suffixes of which some host keeps cookies."""

    def change(self, job: Job) -> None:
        """Take the job as a person has changed it while the crawl runs (job_changes.py)."""
        self._job = job
        self._job_delay_max_s = _delay_max_s(job)
        self.steering.renew()

    def rule(self, url: str) -> SiteRule | None:
        """Return the rule with the most specific match for a canonical URL, or None if the job alone decides."""
        return self._rule(site_of(url, "host")) if self._by_match else None

    def rule_of_site(self, site: str) -> SiteRule | None:
        """Return the rule with the most specific match for a site of any partition, or None."""
        return self.rule(site) if "://" in site else self._rule(site)

    def delay_s(self, site: str) -> float:
        """Return the least seconds between two requests to a site."""
        rule = self.rule_of_site(site)
        by_rule_s = self._job.delay_s if rule is None or rule.delay_s is None else rule.delay_s
        return max(by_rule_s, self.steering.delay_s(site))

    @property
    def delay_max_s(self) -> float:
        """The longest delay of any site, without those that a robots.txt asks for."""
        return max(self._job_delay_max_s, self.steering.delay_max_s)

    @property
    def is_adaptive(self) -> bool:
        """True if the delay of a site follows the time of its answers."""
        return self._job.delay_factor > 0

    def adaptive_s(self, answer_s: float) -> float:
        """Return the seconds for which a site rests after an answer that took so long, or 0 without a factor."""
        return min(self._job.delay_factor * answer_s, self._job.delay_most_s)

    @property
    def refusals_max(self) -> int:
        """Refusals in a row from which the URLs of a site fail without a request, 0 for no limit."""
        return self._job.refusals_max

    def connections(self, site: str) -> int | None:
        """Return the limit on the requests in flight to a site, or None if it has no limit of its own."""
        rule = self.rule_of_site(site)
        return None if rule is None else rule.connections

    def pages_max(self, site: str) -> int | None:
        """Return the limit on the URLs of a site, or None for no limit."""
        rule = self.rule_of_site(site)
        return self._job.site_pages_max if rule is None or rule.site_pages_max is None else rule.site_pages_max

    def recrawl_after_s(self, url: str) -> float:
        """Return the seconds after which the page at a canonical URL is fetched again, or 0 for never."""
        rule = self.rule(url)
        after_s = None if rule is None else rule.recrawl_after_s
        return (self._job.recrawl_after_s or 0.0) if after_s is None else after_s

    def recrawl_bounds_s(self, url: str) -> tuple[float, float]:
        """Return the shortest and the longest time, in seconds, after which that page is fetched again."""
        after_s = self.recrawl_after_s(url) or self._job.recrawl_after_s or 0.0
        return recrawl_bounds_s(after_s, self._job.recrawl_least_s, self._job.recrawl_most_s)

    def retries(self, url: str) -> int:
        """Return the number of retries after a temporary failure of a canonical URL."""
        rule = self.rule(url)
        return self._job.retries if rule is None or rule.retries is None else rule.retries

    def ignores_robots(self, url: str) -> bool:
        """Return whether the robots.txt of the host of a canonical URL is ignored."""
        rule = self.rule(url)
        return rule is not None and rule.robots == "ignore"

    @property
    def authorities(self) -> str:
        """The certificates that the job trusts for every host, as PEM text."""
        return self._job.ca_pem

    @property
    def robots_agent(self) -> str:
        """The name by which a robots.txt speaks to the crawl."""
        return self._job.robots_agent

    def headers(self, rule: SiteRule | None) -> tuple[str, ...]:
        """Return the headers of the requests to the hosts of a rule, or to all other hosts."""
        return self._job.headers if rule is None or not rule.headers else rule.headers

    def user_agent(self, rule: SiteRule | None, default: str) -> str:
        """Return the User-Agent of these requests, with the contact. `default` is that of kadcrawl itself."""
        agent = self._job.user_agent if rule is None or rule.user_agent is None else rule.user_agent
        agent, contact = agent or default, self._job.contact
        return agent if contact in agent else f"{agent} (+{contact})"

    def sends_secrets(self, url: str) -> bool:
        """Return whether the secrets of its rule go to this canonical URL: by its scheme, its host and its port."""
        rule = self.rule(url)
        if rule is None or not (url.startswith("https:") or rule.http_secrets):
            return False
        return site_of(url, "host") in rule.match

    def keeps_cookies(self, url: str) -> bool:
        """Return whether the cookies of the host of a canonical URL are kept and sent back."""
        rule = self.rule(url)
        return rule is not None and rule.cookies == "keep"

    def holds_cookies(self, site: str) -> bool:
        """Return whether a host of this site keeps cookies, so that the site is fetched by its owner alone."""
        if self._keepers is None:
            return self.keeps_cookies(site) if "://" in site else self._keeps(site)
        return bool(self._keepers & {site, EVERY}) or any(site.endswith(f".{keeper}") for keeper in self._keepers)

    def _keeps(self, authority: str) -> bool:
        rule = self._rule(authority)
        return rule is not None and rule.cookies == "keep"

    def login(self, url: str) -> SiteLogin | None:
        """Return the login form of the host of a canonical URL, or None without one."""
        rule = self.rule(url)
        return None if rule is None else rule.login

    def pool(self, url: str) -> str | None:
        """Return the name of the pool by which the host of a canonical URL is fetched, or None if that is direct.

        The proxies of the job itself have an empty name.
        """
        rule = self.rule(url)
        if rule is None or rule.proxies is None:
            return "" if self._job.proxied_by_default else None
        return None if rule.proxies == DIRECT else rule.proxies

    def is_off(self, url: str) -> bool:
        """Return whether a rule leaves the site of a canonical URL out of the crawl."""
        rule = self.rule(url)
        return rule is not None and rule.off

    def follows_sitemaps(self, url: str) -> bool:
        """Return whether the sitemaps of the host of a canonical URL are followed."""
        rule = self.rule(url)
        if rule is None or (rule.sitemaps is None and not rule.sitemap_urls):
            return self._job.sitemaps
        return rule.sitemaps is not False

    def sitemap_urls(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that a rule names for the host of a canonical URL."""
        rule = self.rule(url)
        return () if rule is None else rule.sitemap_urls

    def _rule(self, authority: str) -> SiteRule | None:
        """Return the rule for a host with or without its port."""
        if not (rules := self._by_match):
            return None
        rule = most_specific(rules, authority)
        return self._every if rule is None else rule


def _delay_max_s(job: Job) -> float:
    """Return the longest delay of the job and its rules."""
    adaptive_s = job.delay_most_s if job.delay_factor else 0.0
    return max(job.delay_s, adaptive_s, *(rule.delay_s or 0.0 for rule in job.sites))


def _keepers(job: Job) -> frozenset[str]:
    """Return the registered domains whose hosts match a rule that keeps cookies, or their public suffixes."""
    hosts = {match.removeprefix("*.") for rule in job.sites if rule.cookies == "keep" for match in rule.match}
    return frozenset(host if host == EVERY else site_of(f"http://{host}/", "domain") for host in hosts)
