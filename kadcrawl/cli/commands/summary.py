"""`kadcrawl summary`: the last lines of a crawl, from its directory or from its running peers.

Tests: tests/cli/test_command_resting.py
"""

import json
from dataclasses import replace
from pathlib import Path

import click
import cloup

from kadcrawl.cli.exits import DONE, PROBLEMS, told
from kadcrawl.cli.keys import peer_options_or_directory
from kadcrawl.cli.options import is_given
from kadcrawl.cli.swarm_figures import swarm_figures
from kadcrawl.cli.targets import peer_directories, result_directories
from kadcrawl.cli.view.failed_examples import by_counted_reason, examples_at_the_ends
from kadcrawl.cli.view.last_lines import CrawlEnd, last_lines
from kadcrawl.cli.view.limit_end import limit_sentence, limit_that_ended, with_pages_lost
from kadcrawl.cli.view.orders import order_lines
from kadcrawl.cli.view.summary import LINES_COMPARED_MAX, PageLogs, add_up, figures_line, limits_met


@cloup.command(short_help="Print the figures, failures and results of a crawl.")
@peer_options_or_directory("Any peer of the swarm.")
@cloup.option("--json", "as_json", is_flag=True, help="Print JSON, as crawl --summary writes it.")
@told
def summary(peer: tuple[str, int], data: Path, key_file: Path | None, as_json: bool) -> int:
    """Print the figures of a crawl, its failures, its results and what to do next.

    A running peer is asked, of the whole swarm. If no peer of --data runs, the figures come from the directory.
    """
    from kadcrawl.cli.local.resting import crawl_directories  # Not at the top: it takes time to load.

    found = swarm_figures(peer, data, key_file)
    rows, job = found.status.answer.rows, found.status.job
    result = add_up(rows, None, job, found.status.orders)
    result = replace(result, damaged_journals=found.damaged_journals)
    pending = sum(row.pending for row in rows)
    if found.directory is not None:
        result = with_pages_lost(result, rows, job, found.granted_elsewhere)
    limit = limit_that_ended(result, job, left=pending)
    logs = [] if is_given("peer") else [one for one in crawl_directories(data, job) if one.is_dir()]
    if result.urls_done <= LINES_COMPARED_MAX and peer_directories(data) and logs:
        read = PageLogs(logs, job)
        result = replace(result, duplicates=read.repeats, failed_examples=read.failed_examples)
    elif logs:
        result = replace(result, failed_examples=by_counted_reason(examples_at_the_ends(logs)))
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        click.echo(f"{figures_line(result)}, {pending} pending{f'; below {data}/' if logs else ''}")
        ended = () if limit is None else (limit_sentence(limit, pending),)
        for sentence in (*ended, *order_lines(result.orders), *limits_met(result.links_left_out)):
            click.echo(sentence)
        end = CrawlEnd(
            data=data,
            peers=[] if is_given("peer") else result_directories(data),
            failed=result.urls_failed,
            examples=result.failed_examples,
            record_errors=result.record_errors or 0,
            may_retry=job.history == "exact" and not found.is_of_leaf,
            limit=limit,
        )
        for line in last_lines(end):
            click.echo(line)
    found.say_source()
    return PROBLEMS if found.is_damaged else DONE
