"""Test work in turns: other tasks run in between, and only one piece of long work runs at a time."""

import asyncio

from kadcrawl.system.cooperative import CooperativeWork, run_cooperatively, run_to_end


def take_turns(name: str, turns: int, done: list[str]) -> CooperativeWork[str]:
    for _ in range(turns):
        yield
        done.append(name)
    return name


def test_at_once_is_without_a_pause() -> None:
    done: list[str] = []
    assert "a" == run_to_end(take_turns("a", 3, done))
    assert ["a"] * 3 == done


async def test_other_tasks_run_in_between_and_only_one_long_call_at_a_time() -> None:
    alone = asyncio.Lock()
    done: list[str] = []

    async def other() -> None:
        while len(done) < 8:
            done.append("other")
            await asyncio.sleep(0)

    results = await asyncio.gather(
        run_cooperatively(take_turns("a", 3, done), alone), run_cooperatively(take_turns("b", 3, done), alone), other()
    )
    assert ["a", "b", None] == results
    assert ["a", "other", "a", "other", "a"] == done[done.index("a") : done.index("a") + 5]
    assert ["a"] * 3 + ["b"] * 3 == [name for name in done if name != "other"]


async def test_what_never_yields_waits_for_nobody() -> None:
    alone = asyncio.Lock()
    async with alone:
        assert "a" == await run_cooperatively(take_turns("a", 0, []), alone)


async def test_work_that_is_given_up_lets_the_next_go_on() -> None:
    alone = asyncio.Lock()
    endless = asyncio.create_task(run_cooperatively(take_turns("a", 10**9, []), alone))
    while not alone.locked():
        await asyncio.sleep(0)
    endless.cancel()
    assert "b" == await run_cooperatively(take_turns("b", 3, []), alone)
