"""Data directories with damaged files: the check, the repair, the commands at rest, and peers that go on."""

from random import Random

import pytest

from fuzz.data_files import USES, data, prepared

MUTATIONS = 250


def test_any_damage_ends_in_a_sentence_or_a_repair() -> None:
    random = Random(24)
    for _ in range(MUTATIONS):
        mutation = bytearray((random.randrange(2 * len(USES)),))
        for _ in range(random.choice((1, 1, 2, 4))):
            some = random.randbytes(random.randrange(32))
            mutation += bytes((random.randrange(256), random.randrange(5)))
            mutation += random.randrange(1 << 24).to_bytes(3, "big") + bytes((len(some),)) + some
        data(bytes(mutation))


@pytest.mark.parametrize("use", range(len(USES)))
@pytest.mark.parametrize("is_finished", [True, False])
def test_each_file_may_be_empty_or_missing(use: int, is_finished: bool) -> None:
    for number in range(len(prepared(is_finished))):
        for kind in (3, 4):
            data(bytes((2 * use + is_finished, number, kind, 0, 0, 0, 0)))
