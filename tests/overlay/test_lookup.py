"""Test one lookup step by step. IDs are small numbers and the target is 0, so the number of a contact is its
distance."""

from kadcrawl.link.wire.messages import Contact
from kadcrawl.overlay.lookup import Lookup
from tests.support.links.contacts import contact


def contacts(*numbers: int) -> list[Contact]:
    return [contact(number) for number in numbers]


def lookup(known: list[int], count: int = 1, me: int = 99, asks_max: int = 100) -> Lookup:
    return Lookup(0, count, contact(me), contacts(*known), alpha=3, asks_max=asks_max)


def ask_all(found: Lookup) -> list[int]:
    asked = []
    while (peer := found.next()) is not None:
        asked.append(peer.number)
    return asked


def found_numbers(found: Lookup) -> list[int]:
    return [peer.number for peer in found.result()]


def test_alone_we_are_the_nearest() -> None:
    found = lookup([])
    assert found.finished
    assert found_numbers(found) == [99]


def test_the_alpha_nearest_are_asked_first() -> None:
    assert ask_all(lookup([5, 4, 3, 2, 1])) == [1, 2, 3]


def test_an_answer_is_followed_at_once_without_waiting_for_the_others() -> None:
    found = lookup([10, 11, 12])
    assert ask_all(found) == [10, 11, 12]
    found.answered(contact(11), contacts(1, 2))
    assert ask_all(found) == [1]
    found.answered(contact(1), [])
    assert found.finished
    assert found_numbers(found) == [1]


def test_a_slow_peer_lets_another_be_asked_but_may_still_answer() -> None:
    found = lookup([1, 2, 3, 4])
    ask_all(found)
    found.slow(contact(1))
    assert ask_all(found) == [4]
    found.answered(contact(2), [])
    assert not found.finished, "1 may still answer"
    found.answered(contact(1), [])
    assert found.finished
    assert found_numbers(found) == [1]


def test_a_peer_that_failed_is_never_returned() -> None:
    found = lookup([1, 2, 3])
    ask_all(found)
    found.answered(contact(2), contacts(1))
    found.failed(contact(1))
    assert found.finished
    assert found_numbers(found) == [2]


def test_it_ends_when_the_nearest_count_that_can_be_reached_have_answered() -> None:
    found = lookup([1, 2, 3, 4, 5], count=2)
    ask_all(found)
    found.answered(contact(3), [])
    found.answered(contact(1), [])
    assert not found.finished
    found.failed(contact(2))
    assert found.finished
    assert found_numbers(found) == [1, 3]


def test_all_failed_leaves_ourselves() -> None:
    found = lookup([1, 2])
    for number in ask_all(found):
        found.failed(contact(number))
    assert found.finished
    assert found_numbers(found) == [99]


def test_we_are_in_the_result_where_we_belong_and_never_asked() -> None:
    found = lookup([1, 3], count=3, me=2)
    assert ask_all(found) == [1, 3]
    for number in (1, 3):
        found.answered(contact(number), contacts(2))
    assert found.finished
    assert found_numbers(found) == [1, 2, 3]


def test_nobody_is_asked_twice() -> None:
    found = lookup([1])
    assert ask_all(found) == [1]
    found.answered(contact(1), contacts(1))
    assert ask_all(found) == []


def test_made_up_contacts_end_with_the_questions_allowed() -> None:
    """A liar names ever nearer peers that do not exist."""
    found = lookup([10_000], asks_max=50)
    asked = ask_all(found)
    found.answered(contact(10_000), contacts(*range(90, 10, -1)))
    while not found.finished:
        latest = ask_all(found)
        asked += latest
        for number in latest:
            found.failed(contact(number))
    assert len(asked) == 50
    assert found_numbers(found) == [99]
