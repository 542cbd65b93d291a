"""Test that kadcrawl does with odd servers as their table says, and that the page has measurements of all of them."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from scripts.docs.odd_servers import KEPT, MeasuredOutcomes, key_of
from scripts.odd_servers.clients import Kadcrawl, curl_version, shown_body, shown_links
from scripts.odd_servers.server import OddServers
from scripts.odd_servers.table import BEHAVIORS, TOPICS

ROOT = Path(__file__).parents[2]
AT_ONCE = 6
"""Behaviors asked for at a time: the slow ones wait for each other's time-outs."""


async def test_kadcrawl_does_as_the_table_says(tmp_path: Path) -> None:
    slots = asyncio.Semaphore(AT_ONCE)
    async with OddServers(tmp_path).serving() as servers:
        client = Kadcrawl(servers.authority)

        async def outcome(name: str) -> str:
            async with slots:
                return await client.outcome(BEHAVIORS[name], servers.url(name))

        outcomes = await asyncio.gather(*map(outcome, BEHAVIORS))
    expected = {f"{name}: {behavior.does}": behavior.kadcrawl for name, behavior in BEHAVIORS.items()}
    assert expected == dict(zip(expected, outcomes, strict=True))


def test_the_table_has_many_behaviors_and_none_of_them_twice() -> None:
    assert len(BEHAVIORS) >= 60
    assert len(BEHAVIORS) == sum(len(topic.behaviors) for topic in TOPICS)
    for topic in TOPICS:
        assert len(topic.behaviors) == len({behavior.does for behavior in topic.behaviors})


def test_other_clients_were_measured_with_all_behaviors_and_no_others() -> None:
    measured = msgspec.json.decode((ROOT / KEPT).read_bytes(), type=MeasuredOutcomes)
    assert {key_of(topic, behavior) for topic in TOPICS for behavior in topic.behaviors} == measured.outcomes.keys()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"hello", "`hello`"), (b"x" * 21, "21 bytes"), (b"a\nb", "3 bytes"), (b"\xff", "`\ufffd`")],
)
def test_a_body_is_shown_in_a_few_words(content: bytes, words: str) -> None:
    assert words == shown_body(content)


def test_links_are_shown_relative_to_their_folder() -> None:
    assert "links: `b`, `http://c/`" == shown_links(["http://a/x/b", "http://c/"], "http://a/x/")
    assert "no links" == shown_links([], "http://a/")


def test_the_version_of_curl_is_its_second_word() -> None:
    assert "7.88.1" == curl_version("curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1")
