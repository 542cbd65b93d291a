"""Planted bugs: each breaks one promise of the peers in one place, and the campaign must find it.

A mutant is a function that takes the object at a *seam* (a class's method or a module's function, by its path) and
returns its replacement while the mutant is planted (`unittest.mock.patch.object`). The docstring of the function states
the fault. Nothing else of kadcrawl changes, and kadcrawl does not know this file. A seam that has been renamed makes
`planted` raise AttributeError. The tests check every seam.

Not every slip breaks a promise. These mutants were planted and removed again, because another mechanism makes up for
each while no more peers are gone than the promise allows:

- one wave as proof of the end, or silence taken for idleness: pending URLs are counted at three peers, and at least one
  of them answers
- links on their way not counted: their page stays PENDING until they have arrived
- digests that do not tell PENDING from DONE: they are compared with the number of PENDING beside them, and by windows
  only in cells of thousands
- a death that backups do not report at once: they report misplaced records anyway
- a site's own delay that does not move with the site: waits of more than 10 s are copied, and robots.txt states the
  delay again
- a borrower that is refused and does not give its pages back at once: its next report says so as well
- orders to retry that heartbeats do not carry: a peer that a wave misses seems dead, and others carry the order out in
  its cells
- cells dropped without a check: the worst result is a page fetched twice, which a change of owner may cost
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, NamedTuple
from unittest.mock import patch

from msgspec.structs import replace as batch_with

from kadcrawl.crawl.attempt import AttemptOutcome
from kadcrawl.crawl.fetch.fetcher import always
from kadcrawl.link.wire.absence_messages import AbsenceSeen
from kadcrawl.store.log_parts import part_path

from .target_worlds import MODES, Mode, Topic

Replace = Callable[[Any], Any]
"""Maps the object at the seam to its replacement."""


class Mutant(NamedTuple):
    """One planted bug."""

    name: str
    seam: str
    """``package.module:Class.method`` or ``package.module:function``."""
    breaks: str
    """The fault in words."""
    replace: Replace
    topic: Topic = "any"
    """The worlds in which it is hunted (`sim/target_worlds.py`)."""
    modes: tuple[Mode, ...] = ("exact",)
    """The settings of the job in which it is hunted."""


RETRYING: tuple[Mode, ...] = ("exact", "depth", "pages")
"""The modes in which failed URLs are fetched again by an order only."""

MUTANTS: dict[str, Mutant] = {}
"""Mutants by name, in the order of a URL's life."""

QUICK = (
    "robots_ignored",
    "crawl_delay_ignored",
    "refusals_ignored",
    "nofollow_followed",
    "nofollow_never_ignored",
    "tracking_parameters_kept",
    "off_sites_crawled",
    "cookies_of_other_sites_sent",
    "general_rule_wins",
    "rule_delay_ignored",
    "rule_headers_forgotten",
    "ignored_robots_obeyed",
    "released_and_still_crawled",
    "second_closest_owner",
    "backup_skipped",
    "backups_not_distinct",
    "newcomers_not_told",
    "opened_before_caught_up",
    "done_not_merged",
    "clocks_forgotten_on_move",
    "holders_keep_silent",
    "retries_not_heard_by_all",
    "retries_carried_out_again",
    "site_orders_not_heard_by_all",
    "site_pauses_ignored",
    "exclusions_ignored",
    "drops_without_end",
    "scope_never_regained",
    "missed_site_orders_not_told",
    "slow_orders_ignored",
    "slow_orders_not_told_to_leaves",
    "orders_ignored_after_a_restart",
    "changed_delay_ignored",
    "lowered_limit_ignored",
    "failure_of_one_peer_final",
    "ends_after_a_sample",
    "lease_too_short",
    "borrowed_page_not_written",
    "failures_of_borrowers_forgotten",
    "time_limit_ignored",
    "forgotten_with_the_calendar",
    "proxies_passed_over",
    "dead_proxies_used_on",
    "last_pages_never_granted",
    "borrowers_not_told_of_visits",
)
"""The mutants of a quick campaign: found within a few seeds, and from every room."""


def mutant(seam: str, topic: Topic = "any", modes: tuple[Mode, ...] = ()) -> Callable[[Replace], Replace]:
    """Enter the decorated function under its name. It is hunted in worlds of the topic.

    A mutant of loans is hunted in all modes, unless `modes` are those in which it is a fault.
    """

    def enter(replace: Replace) -> Replace:
        assert replace.__doc__, "a mutant needs a docstring that states its fault"
        wanted = modes or (MODES if topic in ("lending", "crowded", "leases") else MODES[:1])
        MUTANTS[replace.__name__] = Mutant(replace.__name__, seam, replace.__doc__, replace, topic, wanted)
        return replace

    return enter


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Plant the mutant of this name while the context is open, or none for None. Raises KeyError, AttributeError."""
    if name is None:
        yield
        return
    bug = MUTANTS[name]
    path, _, attribute = bug.seam.replace(":", ".").rpartition(".")
    owner = resolve_name(path)
    with patch.object(owner, attribute, bug.replace(getattr(owner, attribute))):
        yield


# --- links on their way ----------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.links.forwarder:Forwarder._offer")
def links_lost_on_refusal(offer: Any) -> Any:
    """An offer that failed, or that the other peer refused, counts as acknowledged."""

    async def offer_once(self: Any, owner: Any, batch: Any) -> Any:
        for link, place in await offer(self, owner, batch):
            self._settle(link, place)
        return []

    return offer_once


@mutant("kadcrawl.crawl.links.forwarder:Forwarder.forward")
def done_before_links_are_safe(forward: Any) -> Any:
    """A page is finished at once, while its links are still on their way."""

    def forward_and_forget(self: Any, *links: Any) -> Any:
        receipt = forward(self, *links)
        if not receipt.acknowledged.done():
            receipt.acknowledged.set_result(None)
        return receipt

    return forward_and_forget


@mutant("kadcrawl.peer.swarm.state_gossip:fetch_segments")
def reach_not_fetched(_: Any) -> Any:
    """A peer that joins, or has missed a wave, does not fetch the reach of streamed seeds."""

    async def fetch_nothing(*_: Any) -> Any:
        for _segment in list[bytes]():
            yield []

    return fetch_nothing


@mutant("kadcrawl.store.journal:Journal.durable")
def acknowledged_before_durable(_: Any) -> Any:
    """Records are acknowledged before they are on disk."""

    def durable(self: Any) -> Any:
        self._dirty.set()
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    return durable


@mutant("kadcrawl.store.journal:Journal.__init__")
def journal_never_synced(init: Any) -> Any:
    """Commits are not synced: a power cut loses all that the system had not written yet."""

    def init_without_sync(self: Any, directory: Any, commit_spacing_s: Any, sync: Any = None) -> None:
        init(self, directory, commit_spacing_s, lambda fds: None)

    return init_without_sync


@mutant("kadcrawl.store.line_log:LineLog.__init__")
def page_lines_not_written_again(init: Any) -> Any:
    """Page lines that were journaled but not in the file when the power went are forgotten."""

    def init_without_outbox(self: Any, path: Any, outbox: Any, **options: Any) -> None:
        init(self, path, (), **options)

    return init_without_outbox


@mutant("kadcrawl.store.line_log:LineLog.roll")
def lines_lost_as_a_log_rolls(roll: Any) -> Any:
    """A page log that is closed as a part loses half of its bytes."""

    def roll_and_cut(self: Any, sync: Any) -> None:
        roll(self, sync)
        part = part_path(self.path, len(self.index.parts))
        os.truncate(part, part.stat().st_size // 2)

    return roll_and_cut


# --- fetching --------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.robots.rules:Rules.allowed")
def robots_ignored(_: Any) -> Any:
    """URLs that robots.txt forbids are fetched."""
    return lambda self, url: True


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.set_delay")
def crawl_delay_ignored(_: Any) -> Any:
    """The delay robots.txt asks for is not kept."""
    return lambda self, name, delay_s, now: None


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.open")
def not_held_after_crash(open_cell: Any) -> Any:
    """A cell whose owner died is crawled at once, not after a full delay."""
    return lambda self, cell, now, *, hold, unsure_since=None: open_cell(
        self, cell, now, hold=False, unsure_since=unsure_since
    )


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.clock")
def clocks_forgotten_on_move(clock: Any) -> Any:
    """The next owner of a cell learns that its sites may be asked at once."""
    return lambda self, name, now: (0.0, clock(self, name, now)[1])


@mutant("kadcrawl.crawl.clocks.clock_keeper:KeptClock.lapse")
def clock_leased_to_two(_: Any) -> Any:
    """The owner of a shared clock leases it although another peer has it."""

    def lapse(self: Any, now: float) -> list[bytes]:
        holders = list(self.leases)
        self.leases.clear()
        return holders

    return lapse


@mutant("kadcrawl.crawl.clocks.clock_keeper:KeptClock.spare", "shares")
def connections_given_twice(real: Any) -> Any:
    """The owner of the clock of a host without a delay gives each peer all connections of the host."""
    return lambda self, peer: self.most if self.is_shared else real(self, peer)


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.shared_rest_s")
def clock_leased_by_a_new_owner_at_once(_: Any) -> Any:
    """A new owner of a shared clock leases it while leases of the former owner are in use."""
    return lambda self, clock, now: 0.0


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.close")
def released_and_still_crawled(_: Any) -> Any:
    """A peer goes on crawling a cell that another peer owns now."""
    return lambda self, cell: None


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.in_flight")
def released_while_in_flight(_: Any) -> Any:
    """A cell is released while requests to its sites are under way."""
    return lambda self, cell: 0


@mutant("kadcrawl.replication.cells:Cells.is_stalled")
def stall_not_noticed(_: Any) -> Any:
    """A peer that was frozen goes on without noticing the stall."""
    return lambda self: False


@mutant("kadcrawl.replication.cells:Cells.absence_seen")
def absences_never_noticed(_: Any) -> Any:
    """A peer that has lost another tells it after its absence that nothing has changed."""
    return lambda self, question: AbsenceSeen(noticed=False)


@mutant("kadcrawl.crawl.attempt:Attempt._complete", topic="overload")
def answers_after_a_stop_dropped(complete: Any) -> Any:
    """A peer that does not know whether its cells are its own drops the pages that it has fetched."""

    async def completed(self: Any, processed: Any) -> Any:
        return await complete(self, processed) if self._hooks.may_start() else AttemptOutcome.PUT_BACK

    return completed


@mutant("kadcrawl.replication.absence_check:AbsenceCheck._end", topic="overload")
def doubts_without_end(end: Any) -> Any:
    """A peer that stalls a second time waits for ever for the answers of its siblings."""
    return lambda self, *, noticed: end(self, noticed=noticed) if self._absences < 2 else None


@mutant("kadcrawl.store.meta_table:SavedTime.restore", topic="overload")
def clock_put_back_not_noticed(_: Any) -> Any:
    """A peer whose wall clock was put back waits for the instants that it has journaled."""

    def restore(self: Any, now: float) -> None:
        self.has_run = self._meta.get("clock") is not None

    return restore


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.refuse")
def refusals_ignored(_: Any) -> Any:
    """A site that answers 429 is asked on at its delay."""
    return lambda self, name, status, asked_s, now: None


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.time_request")
def slow_answers_not_heeded(_: Any) -> Any:
    """A job with a delay factor asks a slow site as often as a quick one."""
    return lambda self, name, seconds, succeeded, now: None


@mutant("kadcrawl.crawl.frontier.active_sites:refused")
def back_off_not_doubled(refused: Any) -> Any:
    """A site that refuses again and again is left alone no longer than at first."""
    return lambda known, *rest: refused(known._replace(wait_s=0.0), *rest)


@mutant("kadcrawl.crawl.frontier.frontier:Frontier.clock_of")
def refusals_forgotten_on_move(clock_of: Any) -> Any:
    """Neither the next owner of a cell nor its backups learn which of its sites refuse requests."""

    def forgetful(self: Any, name: str, now: float) -> Any:
        from kadcrawl.store.back_off import NO_REFUSALS

        clock = clock_of(self, name, now)
        wait_s = min(clock.wait_s, clock.delay_s) if clock.back_off.refusals else clock.wait_s
        return clock._replace(wait_s=wait_s, back_off=NO_REFUSALS)

    return forgetful


@mutant("kadcrawl.settings.site_settings:SiteSettings.refusals_max")
def refusing_sites_never_given_up(_: Any) -> Any:
    """A site that refuses everything is asked for each of its URLs, whatever the job's limit."""
    return property(lambda self: 0)


@mutant("kadcrawl.store.site_table:SiteTable.back_off")
def refusals_not_kept(_: Any) -> Any:
    """The refusals of a site are neither on disk, for a restart, nor known while the site has no work."""
    from kadcrawl.store.back_off import NO_REFUSALS

    return lambda self, site: NO_REFUSALS


@mutant("kadcrawl.lending.lender:Lender._heed_refusal", "lending")
def refusal_of_borrower_not_heeded(_: Any) -> Any:
    """An owner does not count the refusals that its borrowers report, and its other borrowers go on."""
    return lambda self, loan, report: None


# --- links -----------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.content.link_finder:LinkFinder._outlinks_of_page")
def nofollow_followed(outlinks: Any) -> Any:
    """Links that say nofollow are followed in a job that obeys them."""
    return lambda self, entry, result, extracted, *rest: outlinks(
        self, entry, result, replace(extracted, links=[*extracted.links, *extracted.nofollow]), *rest
    )


@mutant("kadcrawl.crawl.content.html_links:LinkExtractor.__init__")
def nofollow_never_ignored(init: Any) -> Any:
    """Links that say nofollow are not followed in a job that ignores it."""

    def obey(self: Any, limits: Any, *, obeys_nofollow: bool = True, agent: str = "kadcrawl", **others: Any) -> None:
        init(self, limits, agent=agent, **others)

    return obey


@mutant("kadcrawl.crawl.content.link_finder:_x_robots_tag")
def robots_header_ignored(_: Any) -> Any:
    """The header X-Robots-Tag is not read."""
    return lambda result: ""


@mutant("kadcrawl.crawl.content.link_finder:_refreshed")
def refresh_header_ignored(_: Any) -> Any:
    """The header Refresh is no link."""
    return lambda entry, result: None


@mutant("kadcrawl.crawl.scope.url_rules:UrlRules._is_stripped")
def tracking_parameters_kept(_: Any) -> Any:
    """Links keep the parameters that the job strips, so a page has many URLs."""
    return lambda self, name: False


@mutant("kadcrawl.crawl.scope.url_rules:UrlRules.__init__")
def queries_not_sorted(init: Any) -> Any:
    """Queries that differ only in the order of their parameters are different URLs in a job that sorts them."""

    def init_unsorted(self: Any, job: Any) -> None:
        init(self, job)
        self._sorts = False

    return init_unsorted


@mutant("kadcrawl.crawl.content.sitemap:_SitemapReader._take_href")
def feeds_of_atom_not_read(_: Any) -> Any:
    """The entries of an Atom feed have no URLs."""
    return lambda self, attributes: None


@mutant("kadcrawl.settings.site_settings:SiteSettings.follows_sitemaps")
def rule_sitemaps_ignored(_: Any) -> Any:
    """The sitemaps of a site are followed as the job says, although a rule says otherwise."""
    return lambda self, url: self._job.sitemaps


# --- rules for single sites ------------------------------------------------------------------------------------------


@mutant("kadcrawl.settings.site_settings:SiteSettings.is_off")
def off_sites_crawled(_: Any) -> Any:
    """A site that a rule turns off is crawled all the same."""
    return lambda self, url: False


@mutant("kadcrawl.settings.site_settings:SiteSettings._rule")
def general_rule_wins(rule: Any) -> Any:
    """The rule for every host beats the rule for a single host."""
    return lambda self, authority: self._every or rule(self, authority)


@mutant("kadcrawl.settings.site_settings:SiteSettings.delay_s")
def rule_delay_ignored(_: Any) -> Any:
    """A site is asked at the job's delay, although a rule says another delay."""
    return lambda self, site: self._job.delay_s


@mutant("kadcrawl.settings.site_settings:SiteSettings.connections")
def rule_connections_ignored(_: Any) -> Any:
    """A site gets as many requests at a time as any other, although a rule says fewer."""
    return lambda self, site: None


@mutant("kadcrawl.settings.site_settings:SiteSettings.pages_max")
def rule_pages_ignored(_: Any) -> Any:
    """All URLs of a site are crawled, although a rule limits their number."""
    return lambda self, site: self._job.site_pages_max


@mutant("kadcrawl.settings.site_settings:SiteSettings.retries")
def rule_retries_ignored(_: Any) -> Any:
    """A page that keeps failing is tried as often as the job says, although a rule says less."""
    return lambda self, url: self._job.retries


@mutant("kadcrawl.settings.site_settings:SiteSettings.headers")
def rule_headers_forgotten(_: Any) -> Any:
    """The requests to a site lack the headers of its rule."""
    return lambda self, rule: self._job.headers


@mutant("kadcrawl.settings.site_settings:SiteSettings.ignores_robots")
def ignored_robots_obeyed(_: Any) -> Any:
    """The robots.txt of a site counts, although a rule ignores it."""
    return lambda self, url: False


# --- cookies ---------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.cookies.site_cookies:SiteCookies.header")
def cookies_of_other_sites_sent(header: Any) -> Any:
    """A site that has given no cookie gets that of another site."""
    last = [""]

    def any_header(self: Any, site: str, url: str, now: float) -> Any:
        last[0] = header(self, site, url, now) or last[0]
        return last[0]

    return any_header


@mutant("kadcrawl.settings.site_settings:SiteSettings.holds_cookies")
def sites_with_cookies_lent(_: Any) -> Any:
    """The pages of a site that keeps cookies are lent, and its cookies do not move with it."""
    return lambda self, site: False


@mutant("kadcrawl.store.site_table:SiteTable.learn_cookies")
def cookies_forgotten_on_move(_: Any) -> Any:
    """Neither the next owner of a site nor its backups learn its cookies."""
    return lambda self, site, cell, cookies: None


@mutant("kadcrawl.crawl.reach.lone_fetcher:LoneFetcher._lies_with_the_site")
def owner_blames_a_site_with_cookies(_: Any) -> Any:
    """A failure to connect to a site that keeps cookies is final, although the network of its owner fails."""

    async def lies_with_the_site(self: Any, url: str, host: str, since: float) -> Any:
        return True

    return lies_with_the_site


# --- owners -----------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.overlay.overlay:Overlay.owns")
def second_closest_owner(_: Any) -> Any:
    """The peer second nearest to a cell takes itself for the owner."""

    def owns(self: Any, cell: Any) -> bool:
        from kadcrawl.keys import anchor

        nearest = self.nearest_known(anchor(cell, self._cell_bits), 2)
        return bool(nearest[-1].id == self.me.id)

    return owns


@mutant("kadcrawl.replication.owner.catch_up:holders")
def backup_skipped(holders: Any) -> Any:
    """The last backup gets no records, so a link is acknowledged with one copy fewer."""
    return lambda nearest: holders(nearest)[:-1]


@mutant("kadcrawl.replication.owner.catch_up:holders")
def backups_not_distinct(_: Any) -> Any:
    """A backup may be the owner itself, as plain double hashing has it."""

    def holders(nearest: Any) -> Any:
        owner, *backups = [candidates[0] for candidates in nearest if candidates]
        return [owner, *{one.id: one for one in backups if one.id != owner.id}.values()]

    return holders


@mutant("kadcrawl.replication.holder_side:HolderSide._send_cells_held")
def holders_keep_silent(_: Any) -> Any:
    """Holders of a cell do not report their records to its owner: neither backups after a death nor returning peers."""

    async def say_nothing(self: Any, owner: Any, cells: Any) -> None:
        return None

    return say_nothing


@mutant("kadcrawl.replication.placement.holdings:Holdings.joined")
def newcomers_not_told(_: Any) -> Any:
    """No peer reports to a newcomer the cells that it owns now."""
    return lambda self, newcomer: ([], [])


# --- copies and sync -------------------------------------------------------------------------------------------------


@mutant("kadcrawl.replication.replicator:Replicator.changed")
def changes_not_copied(_: Any) -> Any:
    """Backups get a cell when it is synced, but no later change of it."""
    return lambda self, cell, key: None


@mutant("kadcrawl.replication.replicator:Replicator.delivery")
def copies_not_awaited(_: Any) -> Any:
    """A link is acknowledged before the backups have the link."""

    def delivery(self: Any, contact: Any, keys: Any = None, *, hurries: bool = False) -> None:
        return None

    return delivery


@mutant("kadcrawl.replication.record_codec:resolved")
def runs_believed_without_a_check(_: Any) -> Any:
    """A backup takes one page too many for done with each run of finished pages."""

    def resolved(store: Any, runs: Any) -> Any:
        entries = [store.entry(run.first) for run in runs]
        keys = store.frontier.keys_from
        return [entry and keys(entry, run.count + 1) for run, entry in zip(runs, entries, strict=True)]

    return resolved


@mutant("kadcrawl.replication.placement.holdings:Holdings.places")
def copies_of_the_job_ignored(_: Any) -> Any:
    """Each cell has three holders, whatever the job says."""

    def places(self: Any, cell: Any) -> Any:
        from kadcrawl.replication.placement.placement import placement_keys

        return placement_keys(cell, self._cell_bits)

    return places


@mutant("kadcrawl.crawl.links.intake:Intake.merge_done")
def done_not_merged(_: Any) -> Any:
    """A peer does not learn that a URL is DONE elsewhere."""
    return lambda self, key, now: None


@mutant("kadcrawl.replication.anti_entropy:AntiEntropy.reconcile")
def opened_before_caught_up(_: Any) -> Any:
    """A cell is opened without the records of the other holders."""

    async def reconcile(self: Any, *_: Any, **__: Any) -> None:
        return None

    return reconcile


@mutant("kadcrawl.replication.holder_side:HolderSide.handed_over")
def left_without_handing_over(_: Any) -> Any:
    """A leaving peer does not wait until others have its cells."""

    async def handed_over(self: Any) -> None:
        return None

    return handed_over


# --- loans -----------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.frontier.site:Site.lend", "lending")
def lent_and_still_crawled(lend: Any) -> Any:
    """A lender goes on at a site with the connections that it has lent."""

    def lend_and_keep(self: Any, count: int, connections: int) -> Any:
        entries = lend(self, count, connections)
        self.lent -= connections
        return entries

    return lend_and_keep


@mutant("kadcrawl.lending.borrower:Borrower.holds_lease", "leases")
def lease_without_end(_: Any) -> Any:
    """A borrower goes on however long its lender has been silent."""
    return lambda self, cell: True


@mutant("kadcrawl.lending.loan:lender_takes_back_at", "lending")
def lease_too_short(_: Any) -> Any:
    """A lender takes pages back before their borrower has stopped."""
    return lambda received_at, silence_s=0.0: received_at + 0.3


@mutant("kadcrawl.lending.lender:Lender._connections_free", "crowded")
def connections_not_waited_for(_: Any) -> Any:
    """Connections are lent while the owner's own requests still use them."""

    async def free(self: Any, loan: Any) -> bool:
        return True

    return free


@mutant("kadcrawl.lending.lender:Lender._end", "lending")
def loan_never_ends(_: Any) -> Any:
    """Pages that a borrower returns stay lent."""

    def end(self: Any, loan: Any, **_: Any) -> None:
        self._loans.pop(loan.id, None)

    return end


@mutant("kadcrawl.replication.cell_crawl:CellCrawl.is_busy", "crowded")
def released_while_lent(_: Any) -> Any:
    """A cell goes to its next owner while others still fetch pages of it."""
    return lambda self, cell: bool(self._frontier.in_flight(cell))


@mutant("kadcrawl.lending.loans:Loans._journal", "lending")
def borrowed_page_not_written(_: Any) -> Any:
    """A page fetched for another peer counts as done and is in no output."""
    return lambda self, entry, line, records, visit, rounds, *, reported: True


# --- limits, and visits again -----------------------------------------------------------------------------------------


@mutant("kadcrawl.urls:_registered_domain", "domain")
def hosts_of_a_domain_apart(_: Any) -> Any:
    """Each host of a domain has a clock and an owner of its own."""
    return lambda authority: authority


@mutant("kadcrawl.crawl.page_budget:share", "pages")
def too_many_pages_granted(share: Any) -> Any:
    """The owner of the budget of pages shares out twice the job's limit."""
    return lambda max_pages, *rest: share(2 * max_pages, *rest)


@mutant("kadcrawl.crawl.page_budget:share", "pages")
def last_pages_never_granted(share: Any) -> Any:
    """The owner of the budget keeps an eighth of the pages to itself."""
    return lambda max_pages, *rest: share(max_pages - max_pages // 8, *rest)


@mutant("kadcrawl.crawl.crawl_time:CrawlTime.is_over", "time")
def time_limit_ignored(_: Any) -> Any:
    """A peer crawls on after the job's limit of time."""
    return lambda self, now: False


@mutant("kadcrawl.crawl.recrawl.policy:Recrawl.next_visit", "recrawl")
def visits_forgotten(next_visit: Any) -> Any:
    """A page that was visited is not due again."""
    return lambda self, *rest: next_visit(self, *rest)._replace(due=None)


@mutant("kadcrawl.crawl.recrawl.policy:Recrawl.next_visit", "recrawl")
def visited_too_soon(next_visit: Any) -> Any:
    """A page is visited again before its period is over."""

    def soon(self: Any, *rest: Any) -> Any:
        visit, now = next_visit(self, *rest), rest[-1]
        return visit if visit.due is None else visit._replace(due=now + (visit.due - now) / 4)

    return soon


@mutant("kadcrawl.replication.record_codec:Records.lending", "recrawl")
def borrowers_not_told_of_visits(lending: Any) -> Any:
    """A borrower takes each visit for the first visit to its page."""

    def lend(self: Any, entries: Any) -> Any:
        batch = lending(self, entries)
        return batch_with(batch, pending=[batch_with(one, rounds=0) for one in batch.pending])

    return lend


@mutant("kadcrawl.crawl.output.outputs:Outputs.line", "recrawl")
def visits_not_counted(line: Any) -> Any:
    """The page line of each visit tells the first visit."""

    def first_visit(self: Any, entry: Any, result: Any, found: Any, place: Any, _: int = 0, *rest: Any) -> Any:
        return line(self, entry, result, found, place, 0, *rest)

    return first_visit


@mutant("kadcrawl.crawl.build:period_of", "calendar")
def forgotten_with_the_calendar(period_of: Any) -> Any:
    """Fingerprints expire as soon as the next unit of the calendar begins."""
    return lambda job: replace(period_of(job), epochs=1)


@mutant("kadcrawl.crawl.proxies.fetcher:ThroughProxies.fetch", "proxies")
def proxies_passed_over(_: Any) -> Any:
    """A page is fetched directly, although the job has proxies."""

    async def fetch(self: Any, url: str, extra_headers: Any = (), may_send: Any = always, **rest: Any) -> Any:
        return await self._fetcher.fetch(url, extra_headers, may_send, **rest)

    return fetch


@mutant("kadcrawl.crawl.proxies.health:ProxyHealth.die", "proxies")
def dead_proxies_used_on(die: Any) -> Any:
    """A proxy that fails again and again is still used, if it has worked once."""

    def live_on(self: Any, now: float, retry_s: float) -> None:
        was_alive = self.alive
        die(self, now, retry_s)
        self.alive = was_alive

    return live_on


# --- orders to retry --------------------------------------------------------------------------------------------------


@mutant("kadcrawl.peer.runtime:Runtime.hear_retries")
def retries_not_heard_by_all(hear: Any) -> Any:
    """Orders to retry do not reach half of the peers."""
    return lambda self, orders: None if self.contact.id[-1] % 2 else hear(self, orders)


@mutant("kadcrawl.peer.swarm.retry_orders:RetryOrders.applying")
def retries_carried_out_again(applying: Any) -> Any:
    """An order to retry applies to failures that are newer than the order."""
    return lambda self, visit: applying(self, visit._replace(order=0))


@mutant("kadcrawl.peer.swarm.retrying:Retrying._changed")
def late_failures_not_retried(_: Any) -> Any:
    """A request that an order has overtaken fails for good."""
    return lambda self, cell, key: None


@mutant("kadcrawl.crawl.recrawl.rounds:Rounds.reported", "lending", RETRYING)
def failures_of_borrowers_forgotten(_: Any) -> Any:
    """A lender does not keep which of its pages failed at a borrower."""
    return lambda self, entry, start, told, failed: None


# --- orders about sites ----------------------------------------------------------------------------------------------


@mutant("kadcrawl.peer.runtime:Runtime.hear_orders")
def site_orders_not_heard_by_all(hear: Any) -> Any:
    """Orders about sites do not reach half of the peers."""
    return lambda self, orders: None if self.contact.id[-1] % 2 else hear(self, orders)


@mutant("kadcrawl.settings.steering:Steering.is_paused")
def site_pauses_ignored(_: Any) -> Any:
    """A paused site is asked as before."""
    return lambda self, site: False


@mutant("kadcrawl.settings.steering:Steering.is_excluded", "orders")
def exclusions_ignored(_: Any) -> Any:
    """An excluded site is crawled as before."""
    return lambda self, site: False


@mutant("kadcrawl.settings.steering:Steering.is_excluded", "orders")
def exclusion_of_every_site(_: Any) -> Any:
    """An order to exclude one site holds for every site."""
    return lambda self, site: bool(self._excluded)


@mutant("kadcrawl.crawl.finishing:PageFinisher.finish_unfetched", "orders")
def excluded_urls_without_a_line(finish: Any) -> Any:
    """The pending URLs of an excluded site count as done and have no page line."""

    def finish_silently(self: Any, entry: Any, why: str) -> None:
        if why == "site_excluded":
            self._source.store.learn_done(entry.key)
        else:
            finish(self, entry, why)

    return finish_silently


@mutant("kadcrawl.settings.steering:Steering.drop_order", "orders")
def drops_ignored(_: Any) -> Any:
    """The pending URLs of a site are fetched, although a person dropped them."""
    return lambda self, site: 0


@mutant("kadcrawl.crawl.scope.scope:Scope.why_ends", "orders")
def drops_without_end(why_ends: Any) -> Any:
    """An order to drop ends the URLs of a site that are found later, too."""

    def why(self: Any, entry: Any) -> Any:
        return "site_dropped" if self.site_settings.steering.drop_order(entry.site) else why_ends(self, entry)

    return why


@mutant("kadcrawl.settings.scope_orders:ScopeOrders.verdict", "orders")
def scope_orders_ignored(_: Any) -> Any:
    """A site that a person has taken out of scope is crawled as before."""
    return lambda self, url: None


@mutant("kadcrawl.settings.scope_orders:ScopeOrders.verdict", "orders")
def scope_never_regained(verdict: Any) -> Any:
    """A site that was out of scope once stays out, whatever a person orders later."""
    removed: set[str] = set()

    def judged(self: Any, url: str) -> Any:
        removed.update(about for about, is_in in self._orders if not is_in)
        return False if any(about in url for about in removed) else verdict(self, url)

    return judged


@mutant("kadcrawl.peer.swarm.state_gossip:StateGossip._answer", "orders")
def missed_site_orders_not_told(answer: Any) -> Any:
    """A peer that the wave of an order about a site has missed never hears of it."""

    async def answer_without(self: Any, asked: Any) -> Any:
        from msgspec.structs import replace as changed

        return changed(await answer(self, asked), orders=[])

    return answer_without


@mutant("kadcrawl.settings.steering:Steering.delay_s", "slowed")
def slow_orders_ignored(_: Any) -> Any:
    """A site that a person has slowed down is asked as before."""
    return lambda self, site: 0.0


@mutant("kadcrawl.peer.swarm.standing_orders:StandingOrders.for_leaves", "slowed")
def slow_orders_not_told_to_leaves(_: Any) -> Any:
    """Leaves do not hear which sites a person has slowed down."""
    return property(lambda self: self.of_kind("set"))


@mutant("kadcrawl.peer.runtime:Runtime._steer", "slowed")
def orders_ignored_after_a_restart(steer: Any) -> Any:
    """A peer that is started again knows the orders of its earlier run and does not follow them."""
    return lambda self, *heard: steer(self, *heard) if heard else None


@mutant("kadcrawl.settings.site_settings:SiteSettings.change", "set")
def changed_delay_ignored(_: Any) -> Any:
    """Sites keep the delay with which the job began, when a person changes it."""
    return lambda self, job: None


@mutant("kadcrawl.crawl.granted_budget:GrantedBudget.set_limit", "set")
def raised_limit_ignored(set_limit: Any) -> Any:
    """A limit of pages that a person raises stays as it was."""
    return lambda self, limit: set_limit(self, limit if limit is None else min(limit, self.limit))


@mutant("kadcrawl.crawl.granted_budget:GrantedBudget.set_limit", "set")
def lowered_limit_ignored(set_limit: Any) -> Any:
    """A limit of pages that a person lowers stays as it was."""
    return lambda self, limit: set_limit(self, limit if limit is None else max(limit, self.limit))


# --- bad networks ----------------------------------------------------------------------------------------------------


@mutant("kadcrawl.crawl.reach.relayed_fetcher:RelayedFetcher._by_peers")
def failure_of_one_peer_final(_: Any) -> Any:
    """A failure to connect is final at once, although another peer may reach the site."""

    async def by_peers(self: Any, request: Any, failed: Any) -> Any:
        return failed or await self._by_itself(request)

    return by_peers


@mutant("kadcrawl.crawl.reach.network_proof:NetworkProof.works")
def networks_never_tested(_: Any) -> Any:
    """A peer whose network fails says that it works, so two such peers blame a site that answers."""

    async def works(self: Any, since: float) -> Any:
        return True

    return works


@mutant("kadcrawl.crawl.reach.network_health:NetworkHealth.give_up_s")
def no_wait_for_the_network(give_up_s: Any) -> Any:
    """A swarm that reaches no site blames the sites at once."""
    return lambda self, now: None if give_up_s(self, now) is None else 0.0


# --- the end ---------------------------------------------------------------------------------------------------------


@mutant("kadcrawl.overlay.waves.termination:Termination._proof")
def ends_after_a_sample(_: Any) -> Any:
    """A sample of idle peers is taken for the whole swarm."""

    async def proof(self: Any) -> Any:
        from kadcrawl.link.wire.messages import Survey
        from kadcrawl.overlay.waves.quiescence import add_up

        sample = await self._waves.ask_some(Survey(), 3, self._random, 2.0)
        idle = not any(tally.pending or tally.unacknowledged or tally.missing for tally in sample)
        return add_up(sample) if idle else None

    return proof


@mutant("kadcrawl.peer.dashboard.swarm_verdict:_word")
def dashboard_done_when_its_peer_is_idle(word: Any) -> Any:
    """A dashboard says that the crawl is done while other peers have URLs left."""
    from kadcrawl.peer.monitoring.verdict import CrawlVerdict

    return lambda view, own: CrawlVerdict.DONE if own is CrawlVerdict.OTHER_PEERS else word(view, own)


@mutant("kadcrawl.peer.dashboard.facts:_peer")
def dashboard_shows_urls_as_pages(peer: Any) -> Any:
    """A dashboard shows the URLs that a peer has found as the pages that it has fetched."""
    return lambda row: peer(row) | {"pages": row.counters.urls}


@mutant("kadcrawl.peer.dashboard.source:facts")
def dashboard_leaves_a_peer_out(facts: Any) -> Any:
    """A dashboard does not show the last peer of a swarm."""

    def without(*args: Any) -> Any:
        document = facts(*args)
        peers = document["peers"]
        return document | {"peers": dict(list(peers.items())[:-1]) if len(peers) > 1 else peers}

    return without


@mutant("kadcrawl.crawl.crawler:Crawler.pending")
def only_open_cells_counted(_: Any) -> Any:
    """A peer seeks the end although it has PENDING copies of cells that no peer has opened yet."""
    return property(lambda self: self._frontier.pending)
