"""Steps 3 and 4 of a URL's life: the owner looks a link up in its history and takes it, once.

Called with links found here, offered by other peers, or given as seeds. Whatever comes from another peer is checked
as if nobody had: canonical, within the limits, in scope. A seed (depth 0) widens the scope, and is taken even if it is
refused by ``exclude`` or the like: somebody asked for it, so the crawler records why it is not fetched. No await here;
the caller acknowledges after `Store.durable`.
"""

from collections.abc import Callable

from kadcrawl.crawl.frontier import Frontier
from kadcrawl.crawl.place import Place
from kadcrawl.crawl.scope import Scope
from kadcrawl.crawl.totals import Totals
from kadcrawl.history.store import Store
from kadcrawl.link.messages import Link
from kadcrawl.overlay.termination import Activity
from kadcrawl.urls import canonical


class Intake:
    """The owner's door."""

    def __init__(
        self,
        store: Store,
        frontier: Frontier,
        scope: Scope,
        totals: Totals,
        activity: Activity,
        by_depth: bool,
    ) -> None:
        """`by_depth`: the job limits depth, so the shortest known path to a URL counts."""
        self._store = store
        self._by_depth = by_depth
        self._frontier = frontier
        self._scope = scope
        self._totals = totals
        self._activity = activity
        self.on_accepted: Callable[[], None] = lambda: None
        """Called when a URL was taken that was never met before."""
        self.rejected = 0
        """Links other peers should not have sent."""

    def take(self, link: Link, place: Place, now: float, tries: int = 0, due: float = 0.0) -> None:
        """Take a link found here, which is canonical and in scope; `tries` and `due` are its retry state."""
        entry = self._store.accept(place.key, place.site, link.url, link.depth, link.hops, tries, due)
        if entry is not None:
            self._totals.urls += 1
            self._activity.move()
            self._frontier.add(entry, now)
            self.on_accepted()
        elif self._by_depth:
            self._store.shorten(place.key, link.depth)

    def take_offered(self, link: Link, place: Place, now: float, tries: int = 0, due: float = 0.0) -> None:
        """Take a link another peer offers, if it stands every check."""
        if link.depth == 0:
            self._scope.add_seeds([link.url])
        if canonical(link.url) != link.url or (link.depth and not self._scope.allows(link.url, link.depth)):
            self.rejected += 1
            return
        self.take(link, place, now, tries, due)
