"""The load level of a peer: it follows from the pending URLs as the paper packs them."""

import pytest
from hypothesis import given, strategies as st

from kadcrawl.balance.level import BlockLoad
from sim.papers.packing import Packing

H = 20


@pytest.mark.parametrize(
    ("pending", "level", "blocks", "ratio"),
    [
        pytest.param(0, -3.0, 0, 0.0, id="empty: as light as can be"),
        pytest.param(1, -2.95, 0, 1 / 60, id="one URL"),
        pytest.param(40, -1.0, 0, 40 / 60, id="room for one block"),
        pytest.param(60, 0.0, 0, 1.0, id="full"),
        pytest.param(79, 0.0, 0, 79 / 60, id="a buffer of less than a block is no block"),
        pytest.param(80, 1.0, 1, 80 / 60, id="one block"),
        pytest.param(1060, 50.0, 50, 1060 / 60, id="there is no limit above"),
    ],
)
def test_level_counts_blocks_beyond_the_work_area_or_room_in_it(
    pending: int, level: float, blocks: int, ratio: float
) -> None:
    load = BlockLoad(pending, 3 * H, H)
    assert (level, blocks, ratio) == (load.level, load.blocks, load.ratio)


@pytest.mark.parametrize(
    ("pending", "work_area", "block"),
    [
        pytest.param(0, 0, 20, id="no work area"),
        pytest.param(0, 30, 20, id="not a multiple"),
        pytest.param(0, 20, 0, id="no block"),
        pytest.param(0, 0, -20, id="less than no block"),
        pytest.param(-1, 20, 20, id="less than nothing pending"),
    ],
)
def test_impossible_loads_are_refused(pending: int, work_area: int, block: int) -> None:
    with pytest.raises(ValueError):
        BlockLoad(pending, work_area, block)


events = st.lists(st.one_of(st.just("arrived"), st.just("crawled"), st.integers(1, 3)), max_size=300)


@given(wide=st.integers(1, 5), block=st.integers(1, 7), happened=events)
def test_pending_tells_what_packing_tells_but_for_a_block_not_yet_unpacked(
    wide: int, block: int, happened: list[str | int]
) -> None:
    packing = Packing(wide, block)
    pending = 0
    for event in happened:
        if event == "arrived":
            packing.arrived()
            pending += 1
        elif event == "crawled":
            if pending:
                packing.crawled()
                pending -= 1
        elif isinstance(event, int) and packing.blocks >= event:
            packing.given(event)
            pending -= event * block
        elif isinstance(event, int):
            packing.taken(event)
            pending += event * block

        load = packing.load
        assert pending == packing.pending
        assert 0 <= packing.inside <= packing.work_area
        assert 0 <= packing.buffer < block
        assert packing.level >= -wide
        if packing.blocks and packing.free:
            assert 0 < packing.free < block
            assert packing.buffer == 0
            assert packing.blocks - 1 == load.blocks == load.level
            assert load.level < packing.level < load.level + 1
        else:
            assert (packing.level, packing.blocks) == (load.level, load.blocks)


def test_a_packed_block_may_leave_its_lender_light_a_counted_one_does_not() -> None:
    packing = Packing(1, H)
    for _ in range(2 * H):
        packing.arrived()
    packing.crawled()  # 19 in the work area, and a block it has no room for.
    assert (1, 0) == (packing.blocks, packing.load.blocks)
    packing.given(1)
    assert packing.level < 0


@given(wide=st.integers(1, 4), other=st.integers(1, 4), pending=st.integers(0, 100))
def test_a_work_area_of_another_size_loses_no_url(wide: int, other: int, pending: int) -> None:
    packing = Packing(wide, 7)
    for _ in range(pending):
        packing.arrived()
    packing.resized(other)
    assert pending == packing.pending
    assert 0 <= packing.buffer < 7
    assert 0 <= packing.inside <= packing.work_area
    assert 0 <= packing.level - packing.load.level < 1
