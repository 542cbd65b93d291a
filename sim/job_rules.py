"""The site rules of a simulated job, from the treatments of a plan, and the treatments of a user's job."""

import re
from collections.abc import Collection, Iterable, Sequence

from kadcrawl.settings.secrets import Secrets
from kadcrawl.settings.site_login import SiteLogin
from kadcrawl.settings.site_rules import EVERY as EVERY_HOST, SiteRule
from kadcrawl.settings.site_settings import SiteSettings

from .site_treatment import EVERY, RULE_HEADER, USUAL_TREATMENT, SiteTreatment
from .wall import LOGIN_PATH

SECRET = "door"
"""The name of the secret of all login forms."""
SECRETS = Secrets({SECRET: "opens"})
"""The secrets of each machine."""
CONTACT = "https://simulator.test/"
"""The contact of jobs that ignore a robots.txt."""


def left_out_by_job(hosts: Collection[str]) -> tuple[str, ...]:
    """Return the `include` of a job that leaves these hosts out, and no others."""
    return (f"^http://(?!({'|'.join(map(re.escape, hosts))})/)",) if hosts else ()


def site_rules(treatments: Iterable[SiteTreatment], hosts: Sequence[str]) -> tuple[SiteRule, ...]:
    """Return the rules that treat the hosts so. `treatments` are those of the hosts, in their order."""
    found = []
    is_general = False
    for host, one in zip(hosts, treatments, strict=True):
        if one.refuses:
            continue  # That is of the web, and not of the job.
        if one.site != EVERY:
            found.append(_rule(one, f"*.{host}" if one.is_starred else host, host))
        elif one != USUAL_TREATMENT and not is_general:
            is_general = True
            found.insert(0, _rule(one, EVERY_HOST, ""))
    return tuple(found)


def contact(rules: Iterable[SiteRule]) -> str:
    """Return the contact that a job with these rules needs, or an empty text."""
    return CONTACT if any(rule.robots == "ignore" for rule in rules) else ""


def treatment(settings: SiteSettings, origin: str) -> SiteTreatment:
    """Return the treatment of a site in a user's job. Its headers are the user's own, so they are not judged."""
    rule = settings.rule(f"{origin}/")
    if rule is None:
        return USUAL_TREATMENT
    return SiteTreatment(
        off=rule.off,
        delay_s=rule.delay_s,
        connections=rule.connections,
        retries=rule.retries,
        ignores_robots=rule.robots == "ignore",
    )


def _rule(one: SiteTreatment, match: str, host: str) -> SiteRule:
    return SiteRule(
        match=(match,),
        off=one.off,
        delay_s=one.delay_s,
        connections=one.connections,
        retries=one.retries,
        site_pages_max=one.pages_max,
        sitemaps=one.sitemaps,
        headers=(f"{RULE_HEADER}: {one.header}",) if one.header else (),
        robots="ignore" if one.ignores_robots else None,
        cookies="keep" if one.cookies else None,
        login=_login(host) if one.login else None,
        http_secrets=True if one.login else None,
    )


def _login(host: str) -> SiteLogin:
    return SiteLogin(url=f"http://{host}{LOGIN_PATH}", fields=(("user", "crawler"),), secrets=(("password", SECRET),))
