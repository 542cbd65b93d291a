"""The routing table: exact, and where the package's is not."""

from collections.abc import Callable
from random import Random

import pytest
from kademlia.node import Node
from kademlia.routing import KBucket, RoutingTable

from kadcrawl.keys import firstdiff, id_bytes
from kadcrawl.overlay.routing import TARGETS_KEPT, Bucket, LiveRoutingTable, Neighbor, shared_level
from tests.support.links.contacts import neighbor

K = 20


def filled_tables(random: Random, peers: int) -> tuple[LiveRoutingTable, RoutingTable]:
    """Our table and the package's, shown the same peers."""
    me = random.getrandbits(160)
    ours, plain = LiveRoutingTable(me, K), RoutingTable(None, K, Node(id_bytes(me)))
    while len(ours.members) < peers:
        other = neighbor(random.getrandbits(160))
        if ours.add_contact(other):
            bucket = plain.buckets[plain.get_bucket_for(other)]
            while not bucket.add_node(other):
                plain.split_bucket(plain.buckets.index(bucket))
                bucket = plain.buckets[plain.get_bucket_for(other)]
    return ours, plain


def test_neighbors_are_the_nearest_known_where_the_package_names_others() -> None:
    random = Random(1)
    plain_wrong = 0
    for _ in range(50):
        ours, plain = filled_tables(random, 60)
        target = Node(id_bytes(random.getrandbits(160)))
        nearest = sorted(ours.members.values(), key=lambda n: n.long_id ^ target.long_id)[:K]
        assert nearest == ours.find_neighbors(target)
        plain_wrong += nearest != plain.find_neighbors(target)
    assert plain_wrong > 5


def test_neighbors_are_exact_for_any_target_and_any_excluded_peer() -> None:
    random = Random(2)
    table, _ = filled_tables(random, 60)
    members = list(table.members.values())
    for suspect in members[::7]:
        table.set_live(suspect, False)
    for bits in (*range(0, 160, 3), 160):
        target = table.me ^ random.getrandbits(bits)
        without = random.choice(members)
        for count in (1, 3, K, 100):
            live = [one for one in members if one.live and one is not without]
            nearest = sorted(live, key=lambda one: one.long_id ^ target)[:count]
            assert table.find_neighbors(Node(id_bytes(target)), count, without) == nearest


def test_every_id_is_in_the_range_of_its_bucket_despite_the_package() -> None:
    middle = Node(id_bytes(2**159))
    plain = RoutingTable(None, K, Node(id_bytes(5)))
    plain.split_bucket(0)
    assert not plain.buckets[plain.get_bucket_for(middle)].has_in_range(middle)

    for me in (0, 5, 2**159, 2**160 - 1):
        table = LiveRoutingTable(me, K)
        for number in (0, 1, 2**159 - 1, 2**159, 2**160 - 1):
            if number != me:
                index = table.get_bucket_for(neighbor(number))
                assert firstdiff(me, number) == index
                assert table.buckets[index].has_in_range(neighbor(number))
                assert table.buckets[index].range[1] < 2**160


def test_a_removed_contact_is_not_replaced_by_one_long_unheard() -> None:
    for bucket, promoted in ((KBucket(0, 100, 1), 1), (Bucket(0, 100, 1), 0)):
        bucket.add_node(neighbor(1))
        bucket.add_node(neighbor(2))
        bucket.remove_node(neighbor(1))
        assert promoted == len(bucket)


def test_a_full_bucket_keeps_its_contacts_and_lets_others_wait() -> None:
    table = LiveRoutingTable(0, 2)
    for number in (8, 9):
        assert table.add_contact(neighbor(number))
    assert not table.add_contact(neighbor(10))
    assert table.replacements(neighbor(8)) == [], "nobody is wanted while the bucket is full"
    table.remove_contact(neighbor(8))
    assert [n.long_id for n in table.replacements(neighbor(8))] == [10]
    assert [n.long_id for n in table.bucket(3)] == [9]


def test_a_sibling_enters_a_full_bucket() -> None:
    table = LiveRoutingTable(0, 2)
    for number in (9, 10):
        table.add_contact(neighbor(number))
    assert table.add_contact(neighbor(8), sibling=True)
    assert [n.long_id for n in table.bucket(3)] == [8, 10, 9]


def test_a_bucket_lists_the_most_recently_heard_first() -> None:
    table = LiveRoutingTable(0, K)
    for number in (8, 9, 10, 8):
        table.add_contact(neighbor(number))
    assert [n.long_id for n in table.bucket(3)] == [8, 10, 9]


def test_the_mask_tells_which_buckets_have_a_live_contact() -> None:
    table = LiveRoutingTable(0, K)
    one, two = neighbor(8), neighbor(9)
    steps: list[tuple[Callable[[], object], list[int]]] = [
        (lambda: table.add_contact(one), [3]),
        (lambda: table.add_contact(two), [3]),
        (lambda: table.set_live(one, False), [3]),
        (lambda: table.set_live(two, False), []),
        (lambda: table.set_live(one, True), [3]),
        (lambda: table.add_contact(neighbor(1)), [0, 3]),
        (lambda: table.remove_contact(one), [0]),
    ]
    for step, filled in steps:
        step()
        assert filled == table.filled()
        assert sum(1 << index for index in filled) == table.live_mask


def test_suspects_are_neither_neighbors_nor_in_their_bucket() -> None:
    table = LiveRoutingTable(0, K)
    suspect = neighbor(8)
    table.add_contact(suspect)
    table.set_live(suspect, False)
    assert [] == table.find_neighbors(neighbor(8)) == table.bucket(3)


def test_our_own_id_has_no_bucket() -> None:
    with pytest.raises(AssertionError, match="own ID"):
        LiveRoutingTable(7, K).add_contact(neighbor(7))


def test_what_is_remembered_of_a_target_follows_each_change_of_the_live_contacts() -> None:
    random = Random(3)
    table, _ = filled_tables(random, 40)
    targets = [random.getrandbits(160) for _ in range(20)]
    absent: list[Neighbor] = []

    def change() -> None:
        one = random.choice(list(table.members.values()))
        match random.randrange(5):
            case 0:
                table.set_live(one, not one.live)
            case 1:
                table.remove_contact(one)
                absent.append(one)
            case 2 if absent:
                table.add_contact(absent.pop())
            case 3:  # The peer has moved: the same ID has another contact.
                table.add_contact(neighbor(one.long_id))
            case _:
                table.add_contact(neighbor(random.getrandbits(160)))

    for _ in range(300):
        change()
        live = [one for one in table.members.values() if one.live]
        for target in targets:
            nearest = sorted(live, key=lambda one: one.long_id ^ target)[:3]
            assert table.nearest(target, 3) == nearest
            table.nearest(target, 3).clear()  # A caller may change what it was given.
            assert table.nearest(target, 3) == nearest


def test_no_more_targets_are_remembered_than_a_limit() -> None:
    table, _ = filled_tables(Random(4), 5)
    for target in range(2 * TARGETS_KEPT):
        table.nearest(target, 1)
    assert 0 < len(table._nearest) <= TARGETS_KEPT


def test_the_tables_of_a_process_share_the_numbers_that_they_keep_of_a_peer() -> None:
    one, other = neighbor(3 << 100), neighbor(3 << 100, port=2)
    assert 3 << 100 == one.long_id == Node(one.id).long_id
    assert one.long_id is other.long_id
    assert not hasattr(one, "__dict__"), "each peer has dozens of them"
    assert shared_level(int("-1234")) is shared_level(int("-1234"))
