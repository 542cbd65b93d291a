"""The end is never said early: every schedule of a small swarm, and a model of the whole in random order."""

from collections import deque
from itertools import count
from random import Random

import pytest

from kadcrawl.link.wire.messages import Tally
from kadcrawl.overlay.waves.quiescence import MISSING, Quiescence, add_up, own_view
from tests.support.cases import cases


def tally(pending: int = 0, unacknowledged: int = 0, missing: int = 0, view: bytes = bytes(16)) -> Tally:
    return Tally(1, view, pending, unacknowledged, missing)


IDLE = tally()
MOVED = tally(view=bytes(15) + b"\1")


@pytest.mark.parametrize(
    ("waves", "expected"),
    [
        ([IDLE], False),
        ([IDLE, IDLE], True),
        ([IDLE, MOVED], False),
        ([IDLE, MOVED, MOVED], True),
        ([IDLE, tally(pending=1)], False),
        ([IDLE, tally(pending=1), IDLE], False),
        ([IDLE, tally(unacknowledged=1), IDLE], False),
        ([tally(missing=1), tally(missing=1)], False),
        ([IDLE, tally(missing=1), IDLE], False),
    ],
)
def test_two_equal_idle_waves_in_a_row_and_nothing_less(waves: list[Tally], expected: bool) -> None:
    quiescence = Quiescence()
    assert expected == [quiescence.observe(wave) for wave in waves][-1]


def test_a_tally_of_parts_does_not_depend_on_how_they_are_split() -> None:
    parts = [tally(pending=n, unacknowledged=2 * n, view=own_view(bytes([n]) * 20, b"i" * 8, n)) for n in range(5)]
    whole = add_up(parts)
    assert whole == add_up([add_up(parts[:2]), add_up(parts[2:])]) == add_up(reversed(parts))
    assert (5, 10, 20, 0) == (whole.members, whole.pending, whole.unacknowledged, whole.missing)
    assert add_up([whole, MISSING]).missing == 1


def test_the_view_tells_who_is_there_whether_restarted_and_what_it_did() -> None:
    views = {
        own_view(peer * 20, incarnation * 8, count)
        for peer in (b"a", b"b")
        for incarnation in (b"x", b"y")
        for count in (1, 2)
    }
    assert len(views) == 8


class Model:
    """Peers that pass work to each other by acknowledged messages, as links travel, one small step at a time."""

    def __init__(self, random: Random, peers: int) -> None:
        self.random = random
        self.pending = [0] * peers
        self.unacknowledged = [0] * peers
        self.counter = [0] * peers
        self.wire: deque[tuple[int, int, bool]] = deque()
        self.work_left = random.randrange(1, 25)
        self.pending[0] = 1

    @property
    def over(self) -> bool:
        return not any(self.pending) and not self.wire

    def step(self) -> None:
        if self.wire and self.random.random() < 0.4:
            self.wire.rotate(self.random.randrange(len(self.wire)))
            source, target, is_ack = self.wire.popleft()
            if is_ack:
                self.unacknowledged[source] -= 1
                if not self.unacknowledged[source]:
                    # Only now is the page finished from which the links came.
                    self.pending[source] -= 1
                    self.counter[source] += 1
            else:
                self.pending[target] += 1
                self.counter[target] += 1
                self.wire.append((source, target, True))
            return
        peer = self.random.randrange(len(self.pending))
        if self.pending[peer] and not self.unacknowledged[peer]:
            links = min(self.work_left, self.random.randrange(3))
            self.work_left -= links
            for _ in range(links):
                self.unacknowledged[peer] += 1
                self.wire.append((peer, self.random.randrange(len(self.pending)), False))
            if not links:
                self.pending[peer] -= 1
                self.counter[peer] += 1

    def ask(self, peer: int) -> Tally:
        view = own_view(bytes([peer]) * 20, b"i" * 8, self.counter[peer])
        return Tally(1, view, self.pending[peer], self.unacknowledged[peer], 0)


@cases("seed", range(300))
def test_never_early_and_not_missed_however_slow_the_waves(seed: int) -> None:
    random = Random(seed)
    model = Model(random, peers=4)
    quiescence = Quiescence()
    for wave in count():
        tallies = []
        for peer in random.sample(range(4), 4):
            for _ in range(random.randrange(6)):
                model.step()
            tallies.append(model.ask(peer))
        if quiescence.observe(add_up(tallies)):
            break
        assert wave < 10_000
    assert model.over
    assert not any(model.unacknowledged)
