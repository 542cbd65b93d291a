"""Parameters of a query that say where a visitor came from, in sets with names, for `Job.strip_parameters`.

A parameter of a set is added by whoever links to a page, and the page is the same without it. A name in the setting is
that of a set, or of a single parameter, with one `*` for any characters.

Tests: tests/settings/test_parameter_sets.py, tests/crawl/scope/test_url_rules.py
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kadcrawl.settings.limits import require

PARAMETER_SETS: Final[dict[str, tuple[str, ...]]] = {
    "utm": ("utm_*",),
    "click-ids": (
        *("gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid"),
        *("fbclid", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id", "igsh", "igshid", "rdt_cid"),
        *("irclickid", "epik", "sccid", "s_kwcid", "_openstat"),
    ),
    "mail": (
        *("mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id"),
        *("ck_subscriber_id", "ml_subscriber", "ml_subscriber_hash", "wickedid", "_kx", "dm_i"),
    ),
    "analytics": ("_ga", "_gl", "hsa_*", "mtm_*", "matomo_*", "pk_*", "piwik_*"),
}
"""Set -> its parameters: of campaigns, of clicks on advertisements and in social networks, of newsletters, and of
analysis software."""
NAMES_MAX: Final = 1_000
"""Limit on the names in the setting."""
NAME_CHARS_MAX: Final = 100
"""Limit on the characters of one name."""
_NAME: Final = re.compile(r"[!-~]+")


def check_parameters(names: Iterable[str]) -> None:
    """Raise ConfigError for a name that no parameter can have."""
    names = tuple(names)
    require(len(names) <= NAMES_MAX, f"strip_parameters has at most {NAMES_MAX} names, not {len(names)}")
    for name in names:
        shown = repr(name[:40])
        require(
            len(name) <= NAME_CHARS_MAX and _NAME.fullmatch(name) is not None and not set(name) & set("&=#?"),
            f"strip_parameters must be names of parameters or of sets ({', '.join(PARAMETER_SETS)}), not {shown}",
        )
        require(name.count("*") <= 1, f"strip_parameters may have one * in a name, not {shown}")


def parameters_of(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of the parameters that these names mean, perhaps with a `*`."""
    for name in names:
        yield from PARAMETER_SETS.get(name, (name,))
