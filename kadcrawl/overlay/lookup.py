"""One lookup: which peer to ask next for the peers nearest to a key, and when the result is certain (Kademlia 2.3).

A lookup has no rounds: as soon as one peer answers or is slow, the next is asked. A peer that fails is out, so the
result holds only peers that answered in this lookup, and the asking peer itself. The lookup is finished when the
`count` nearest peers that have not failed have all answered: no peer asked knows a nearer one.

Made-up contacts cost a liar nothing and the asking peer one question each; `asks_max` bounds them. A decision:
`Lookups` sends the questions.
"""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from kadcrawl.link.wire.messages import Contact


class CandidateProgress(Enum):
    """The progress of the lookup with one candidate."""

    UNASKED = "unasked"
    ASKED = "asked"
    SLOW = "slow"
    """The answer is still awaited, but other candidates are asked at the same time."""
    ANSWERED = "answered"
    FAILED = "failed"


@dataclass(slots=True, order=True)
class Candidate:
    """A peer that may belong to the result. Ordered by distance to the target."""

    distance: int
    contact: Contact = field(compare=False)
    progress: CandidateProgress = field(compare=False, default=CandidateProgress.UNASKED)


class Lookup:
    """The state of one lookup by `me` for the `count` peers nearest to `target`, begun at the `known` contacts."""

    def __init__(
        self, target: int, count: int, me: Contact, known: Iterable[Contact], *, alpha: int, asks_max: int
    ) -> None:
        self.target = target
        self._count = count
        self._alpha = alpha
        self._asks_left = asks_max
        self._nearest: list[Candidate] = []
        self._by_id: dict[bytes, Candidate] = {}
        self._add(me).progress = CandidateProgress.ANSWERED
        self.learn(known)

    def learn(self, contacts: Iterable[Contact]) -> None:
        """Add further candidates. Known candidates are skipped."""
        for contact in contacts:
            if contact.id not in self._by_id:
                self._add(contact)

    def next(self) -> Contact | None:
        """Return a candidate to ask now, and count it as asked. None while enough are asked, or after all were."""
        in_flight = sum(c.progress is CandidateProgress.ASKED for c in self._nearest)
        if in_flight >= self._alpha or self._asks_left == 0:
            return None
        # Beyond the nearest `width` an answer could not change the result, unless a nearer candidate fails.
        width = max(self._count, self._alpha)
        for candidate in self._nearest:
            if candidate.progress is CandidateProgress.UNASKED:
                candidate.progress = CandidateProgress.ASKED
                self._asks_left -= 1
                return candidate.contact
            if candidate.progress in (CandidateProgress.ASKED, CandidateProgress.ANSWERED):
                width -= 1
                if width == 0:
                    break
        return None

    def slow(self, contact: Contact) -> None:
        """Note that `contact` has not answered yet, so that another candidate is asked at the same time."""
        candidate = self._by_id[contact.id]
        if candidate.progress is CandidateProgress.ASKED:
            candidate.progress = CandidateProgress.SLOW

    def answered(self, contact: Contact, contacts: Iterable[Contact]) -> None:
        """Note the answer of `contact`: the peers it knows nearest to the target."""
        self._by_id[contact.id].progress = CandidateProgress.ANSWERED
        self.learn(contacts)

    def failed(self, contact: Contact) -> None:
        """Note that `contact` will not answer."""
        self._by_id[contact.id].progress = CandidateProgress.FAILED

    @property
    def finished(self) -> bool:
        """The result is certain, or no further question is allowed and none is open."""
        if all(progress is CandidateProgress.ANSWERED for progress in self._leading()):
            return True
        waiting = any(c.progress in (CandidateProgress.ASKED, CandidateProgress.SLOW) for c in self._nearest)
        return self._asks_left == 0 and not waiting

    def result(self) -> list[Contact]:
        """Return the up to `count` nearest peers that answered, nearest first."""
        answered = [c.contact for c in self._nearest if c.progress is CandidateProgress.ANSWERED]
        return answered[: self._count]

    def _leading(self) -> list[CandidateProgress]:
        """Return the progress of the `count` nearest candidates that have not failed."""
        leading: list[CandidateProgress] = []
        for candidate in self._nearest:
            if candidate.progress is not CandidateProgress.FAILED:
                leading.append(candidate.progress)
                if len(leading) == self._count:
                    break
        return leading

    def _add(self, contact: Contact) -> Candidate:
        candidate = Candidate(contact.number ^ self.target, contact)
        self._by_id[contact.id] = candidate
        insort(self._nearest, candidate)
        return candidate
