"""The check of the data of a crawl: all files of all its peers, and each kind against the others.

Tests: tests/cli/data_check/test_data_check.py
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from kadcrawl.cli.data_check.catalog import Catalog
from kadcrawl.cli.data_check.data_finding import REFETCH, DataFinding, Report, damage, oddity
from kadcrawl.cli.data_check.journal_check import JournalFacts, check_journal
from kadcrawl.cli.data_check.line_check import PAGES, RECORDS, check_pages, check_records
from kadcrawl.cli.data_check.state_file_check import check_state_files
from kadcrawl.cli.data_check.warc_check import check_warc, compare_archive, files_here
from kadcrawl.cli.local.resting import directories_without_copies
from kadcrawl.cli.targets import has_lost_journal, is_set_aside
from kadcrawl.cli.view.repeats import recurring_visits
from kadcrawl.store.line_log import MOVE_AWAY
from kadcrawl.system.file_names import JOURNAL
from kadcrawl.system.plural import plural


@dataclass(slots=True)
class DataReport:
    """The result of a check of one directory."""

    directory: Path
    peers: list[Path]
    journals: list[JournalFacts] = field(default_factory=list)
    """The facts of the journals, in the order of the peers."""
    lines: list[int] = field(default_factory=list)
    """Numbers of page lines, in the order of the peers."""
    findings: list[DataFinding] = field(default_factory=list)
    are_lines_elsewhere: bool = False
    """True if a peer has closed parts of its logs that are not here."""
    incomplete_urls: set[str] = field(default_factory=set)
    """URLs that lack a line or a record and can be fetched again, if the caller asked for them."""

    @property
    def page_lines(self) -> int:
        """Number of page lines of all peers."""
        return sum(self.lines)

    @property
    def is_exact(self) -> bool:
        """True if the job keeps the key of each finished URL."""
        return any(facts.job is not None and facts.job.history == "exact" for facts in self.journals)

    @property
    def cell_bits(self) -> int:
        """Number of bits of a cell, 0 if the job is unknown."""
        return next((facts.job.bits for facts in self.journals if facts.job is not None), 0)

    @property
    def is_whole(self) -> bool:
        """True if all peers and leaves of the swarm are here, as far as they knew each other, with all their logs."""
        here = {facts.node_id for facts in self.journals}
        if self.are_lines_elsewhere:
            return False
        return all(facts.is_readable and {contact.id for contact in facts.contacts} <= here for facts in self.journals)

    def warc_end(self, path: Path) -> int:
        """Return the offset behind the last record of a WARC file: its journaled end, if the peer wrote it last."""
        journaled = next((facts.warc for facts in self.journals if facts.warc and facts.warc[0] == path.name), None)
        size = path.stat().st_size
        return size if journaled is None else min(size, journaled[1])

    def has_good_journal(self, peer: Path) -> bool:
        """Return whether the journal of a peer can be read and written."""
        return peer in self.peers and self.journals[self.peers.index(peer)].is_readable


def peers_with_data(directory: Path) -> list[Path]:
    """Return the directories of peers with a journal or with results, at this directory or in it, without copies."""
    names = (JOURNAL, PAGES, RECORDS, "warc")
    return [peer for peer in directories_without_copies(directory) if any((peer / name).exists() for name in names)]


def check_data(directory: Path, report: Report, *, with_urls: bool = False) -> DataReport:
    """Check the data of the peers in a directory. No process may use it. Changes no file, and raises OSError.

    `with_urls` collects the URLs that can be fetched again.
    """
    result = DataReport(directory, peers_with_data(directory))
    with closing(Catalog()) as catalog:
        for number, peer in enumerate(result.peers):
            _check_peer(peer, number, catalog, result, report)
        report(directory, None)
        catalog.index()
        for number, peer in enumerate(result.peers):
            result.findings += _compare_peer(peer, number, catalog, are_lines_here=not result.are_lines_elsewhere)
        result.findings += _compare_all(result, catalog)
        if with_urls and result.is_exact:
            here = [
                (number, name) for number, peer in enumerate(result.peers) for name in files_here(peer, number, catalog)
            ]
            result.incomplete_urls = catalog.incomplete_urls(
                here, are_lines_here=result.is_whole, are_records_here=not result.are_lines_elsewhere
            )
    return result


def _check_peer(peer: Path, number: int, catalog: Catalog, result: DataReport, report: Report) -> None:
    """Check the files of one peer one by one, and enter them into the catalog."""
    facts = JournalFacts()
    result.findings += check_state_files(peer)
    if (peer / JOURNAL).exists():
        facts, findings = check_journal(peer, catalog, report)
        if is_set_aside(peer, result.directory):  # As a person was told to do, and the crawl does without it.
            findings = [
                oddity(each.kind, peer / JOURNAL, each.count, each.said, "the crawl goes on without this directory")
                for each in findings
            ]
        result.findings += findings
    elif has_lost_journal(peer) and not is_set_aside(peer, result.directory):
        said = "it is not there, although pages have been fetched"
        result.findings.append(damage("journal", peer / JOURNAL, 1, said, MOVE_AWAY))
    else:  # Perhaps somebody has copied the results alone.
        said = "there are results without their journal"
        result.findings.append(oddity("journal", peer / JOURNAL, 1, said, "no peer starts where pages are without it"))
    figures, findings = check_pages(peer, number, facts.partitioner, catalog, report)
    result.findings += findings
    result.journals.append(facts)
    result.lines.append(figures.lines)
    record_figures, findings = check_records(peer, number, catalog, report)
    result.findings += findings
    if figures.elsewhere or record_figures.elsewhere:
        result.are_lines_elsewhere = True
    result.findings += check_warc(peer, number, facts.warc, facts.partitioner, catalog, report)


def _compare_peer(peer: Path, number: int, catalog: Catalog, *, are_lines_here: bool) -> Iterator[DataFinding]:
    yield from compare_archive(peer, number, catalog)
    if repeated := catalog.repeated_lines(number):
        said = f"{plural(repeated, 'line is', 'lines are')} there twice, byte by byte"
        yield damage("repeated_line", peer / PAGES, repeated, said, "leave out equal lines as you read")
    if (lacking := catalog.without_records(number)) and are_lines_here:
        said = f"{plural(lacking, 'page lacks', 'pages lack')} records that {PAGES} counts"
        yield damage("lost_record_line", peer / RECORDS, lacking, said, REFETCH)
    if (orphans := catalog.records_of_no_page(number)) and are_lines_here:
        said = f"{plural(orphans, 'line is', 'lines are')} of pages without a line in {PAGES}"
        yield oddity("record_of_no_page", peer / RECORDS, orphans, said)


def _compare_all(result: DataReport, catalog: Catalog) -> Iterator[DataFinding]:
    """Yield the findings about the journals and page lines of all peers together."""
    directory = result.directory
    recurring = recurring_visits(next((facts.job for facts in result.journals if facts.job is not None), None))
    if twice := catalog.finished_twice(recurring):
        said = f"{plural(twice, 'visit was', 'visits were')} finished twice, as after a crash"
        same = "the same visit" if recurring is None else "times too near for another visit to be due"
        yield oddity("twice", directory, twice, said, f"leave out lines with the same key and {same}")
    yield from _missing_lines(result.peers, result.journals, result.lines, result.is_exact and result.is_whole)
    if not result.is_exact:
        return
    if lost := catalog.without_line():
        said = f"{plural(lost, 'URL is', 'URLs are')} finished in a journal and without a page line here"
        if result.is_whole:
            yield damage("url_without_line", directory, lost, said, REFETCH)
        else:
            yield oddity("url_without_line", directory, lost, said, "peers or parts elsewhere have the lines")
    if unknown := catalog.unknown_pages():
        said = f"{plural(unknown, 'page line is', 'page lines are')} of URLs that no journal here knows"
        yield oddity("unknown_url", directory, unknown, said, "peers elsewhere know them")


def _missing_lines(
    peers: Sequence[Path], journals: Sequence[JournalFacts], lines: Sequence[int], are_urls_compared: bool
) -> Iterator[DataFinding]:
    """Yield a finding for each peer that has finished more URLs than it has lines."""
    for peer, facts, there in zip(peers, journals, lines, strict=True):
        if facts.lines is not None and there < facts.lines:
            lost = facts.lines - there
            said = f"{plural(lost, 'line is', 'lines are')} missing: the journal counts {facts.lines:,}"
            # If all URLs are compared by name, a URL whose line is lost may have another line.
            kind = oddity if are_urls_compared else damage
            yield kind("missing_line", peer / PAGES, lost, said, "copy the file from a backup")
