"""The login hooks of a job that this machine lacks, for `kadcrawl check`.

Tests: tests/cli/commands/test_check.py
"""

from collections.abc import Iterable

from kadcrawl.cli.run import run
from kadcrawl.crawl.cookies.login_hook import check_login_hooks
from kadcrawl.errors import StartError
from kadcrawl.settings.limits import Limits


def missing(hooks: Iterable[str]) -> list[str]:
    """Return for each hook that cannot be imported here why, in a sentence."""
    found = []
    for hook in sorted(hooks):
        try:
            run(check_login_hooks([hook], Limits()))
        except StartError as error:
            found.append(str(error))
    return found
