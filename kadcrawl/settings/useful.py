"""The check that each setting that a person gave has an effect, together with the others.

Tests: tests/settings/test_job_file.py, tests/cli/test_job_options.py
"""

from collections.abc import Collection

from kadcrawl.errors import ConfigError
from kadcrawl.settings.job import Job


def check_useful(job: Job, said: Collection[str]) -> None:
    """Raise ConfigError if a field in `said`, the fields with a given value, has no effect in a job."""
    lends = job.lends_by != "off"
    for names, useful, otherwise in (
        (("block_urls", "update_s"), lends, "balance off lends no pages"),
        (("solver",), job.lends_by == "predictive", "it is for balance predictive"),
        (("delay_most_s",), job.delay_factor > 0, "it is for delay_factor"),
        (("recrawl_adaptive",), job.recrawl_after_s is not None, "it is for recrawl_after_s"),
        (("recrawl_least_s", "recrawl_most_s"), job.recrawl_adaptive, "they are for recrawl_adaptive"),
        (("filters",), job.history == "bloom", "it is for history bloom"),
        (
            ("grain_s", "calendar_grain"),
            job.history == "bloom" and job.recrawl_after_s is not None,
            "it is for history bloom with recrawl_after_s",
        ),
        (("proxy_judge",), job.by_proxies, "it is for proxies"),
    ):
        if idle := [name for name in names if name in said and not useful]:
            raise ConfigError(f"{' and '.join(idle)} would do nothing, as {otherwise}")
