"""The rules for single sites that a plan's job has, and the site with an annex, drawn from the seed.

Each rule changes one or two settings.
"""

from random import Random

from msgspec.structs import replace

from kadcrawl.settings.job import Job

from .annex import Annex
from .site_treatment import EVERY, TREATED_MOST, USUAL_TREATMENT, SiteTreatment

TREATED = 1 / 2
"""Share of the plans whose job has rules for sites."""
SITES_TREATED = (1, 2, 3)
GENERAL = 1 / 3
"""Share of those plans with a rule for all other sites, which a rule for a single site must beat."""
STARRED = 1 / 3
"""Share of the rules that are for a host and all hosts below it."""
HEADED = 1 / 2
"""Share of the rules with a header of their own."""
CONNECTIONS = (1, 2)
"""Fewer than the limit of a machine (`sim/trial.py`)."""
RETRIES = (0, 1)
"""Fewer than the retries of the job."""
APART = 4
"""The numbers between two sites that give cookies: one of them is not small."""
PAGES_MOST = (2, 3, 4)
"""Fewer than most sites have."""
GIVEN_UP = 1 / 3
"""Share of the plans without pages that refuse at first, in which a site refuses everything."""
REFUSALS = (2, 3)
"""Refusals in a row after which the job gives up such a site. A robots.txt that fails at first refuses once."""
ANNEXES = 3 / 4
"""Share of the plans without a long delay that have an annex."""
ANNEX_SITES = range(1, 6)
"""The sites that may have it. The largest has enough pages of its own."""


def draw_refusals_max(seed: int, refusing: float) -> int:
    """Return the refusals in a row after which the job gives a site up.

    If `refusing`, the share of pages that refuse the first requests, is above 0, no site must be given up.
    """
    random = Random(f"refusals {seed}")
    is_drawn = random.random() < GIVEN_UP and not refusing
    return random.choice(REFUSALS) if is_drawn else Job().refusals_max


def draw_treatments(seed: int, own_delay_s: float, delay_factor: float, refusals_max: int) -> tuple[SiteTreatment, ...]:
    """Return the treatments of a plan. `own_delay_s` is a long delay in this plan.

    If the job gives sites up after fewer refusals than by default, one site refuses everything.
    """
    found = _drawn_rules(seed, own_delay_s, delay_factor)
    if refusals_max >= Job().refusals_max:
        return found
    site = Random(f"refusing site {seed}").randrange(TREATED_MOST)
    general = next((one for one in found if one.site == EVERY), USUAL_TREATMENT)
    return (*(one for one in found if one.site != site), replace(general, site=site, refuses=True))


def _drawn_rules(seed: int, own_delay_s: float, delay_factor: float) -> tuple[SiteTreatment, ...]:
    random = Random(f"treatments {seed}")
    if random.random() >= TREATED:
        return ()
    found = []
    if random.random() < GENERAL:
        found.append(SiteTreatment(EVERY, header="every"))
    kinds = ["off", "delay", "connections", "retries", "robots", "header", "sitemaps", "cookies", "pages"]
    weights = [4, 4, 0 if delay_factor else 4, 3, 3, 1, 2, 5, 2]
    sites = random.sample(range(TREATED_MOST), random.choice(SITES_TREATED))
    for site in sites:
        [kind] = random.choices(kinds, weights)
        delay_s = random.choice((0.0, own_delay_s / 2, own_delay_s))
        connections, retries = random.choice(CONNECTIONS), random.choice(RETRIES)
        follows = has_login = random.random() < 0.5
        is_starred, is_headed = random.random() < STARRED, random.random() < HEADED
        header = f"site {site}" if is_headed or kind == "header" else ""
        match kind:
            case "off":
                found.append(SiteTreatment(site, is_starred, off=True))
            case "delay":
                found.append(SiteTreatment(site, is_starred, delay_s=delay_s, header=header))
            case "connections":
                found.append(SiteTreatment(site, is_starred, delay_s=0.0, connections=connections, header=header))
            case "retries":
                found.append(SiteTreatment(site, is_starred, retries=retries, header=header))
            case "robots":
                found.append(SiteTreatment(site, ignores_robots=True, header=header))
            case "sitemaps":
                found.append(SiteTreatment(site, is_starred, sitemaps=follows, header=header))
            case "cookies":
                found.append(SiteTreatment(site, cookies=True, login=has_login, header=header))
                another = (site + APART) % TREATED_MOST
                if another not in sites:  # A cookie may go to the wrong site only if two sites give some.
                    found.append(SiteTreatment(another, cookies=True, login=not has_login))
            case "pages":
                found.append(SiteTreatment(site, is_starred, pages_max=random.choice(PAGES_MOST), header=header))
            case "header":
                found.append(SiteTreatment(site, is_starred, header=header))
    return tuple(found)


def draw_annex(seed: int, delay_s: float) -> Annex | None:
    """Return the annex of a plan, or None. With a long delay its pages would take too long."""
    random = Random(f"annex {seed}")
    if random.random() >= ANNEXES or delay_s > 1.0:
        return None
    site = random.choice(ANNEX_SITES)
    ignores_nofollow, strips, sorts, sitemaps = (random.random() < 0.5 for _ in range(4))
    return Annex(site, ignores_nofollow, strips, sorts, sitemaps)
