"""Test the way of a URL as the dashboard shows it, and the sentences of the check."""

from typing import Any

from kadcrawl import Job
from kadcrawl.crawl.scope.explain import explain
from kadcrawl.link.wire.basics import Contact
from kadcrawl.link.wire.find_url_messages import UrlFound
from kadcrawl.peer.dashboard.url_way import sentences, url_way

JOB = Job(seeds=("https://example.org/",), scope="host", exclude=("/old/",))
OWNER, BACKUP = Contact(b"\1" * 20, "10.0.0.1", 4160), Contact(b"\2" * 20, "::1", 4160)


def way(url: str = "https://example.org/a", **found: Any) -> dict[str, Any]:
    (verdict,) = explain(JOB, [url])
    return url_way(verdict, UrlFound(OWNER, [BACKUP], **found))


def test_the_place_of_a_url_is_that_of_the_check() -> None:
    shown = way()
    (verdict,) = explain(JOB, ["https://example.org/a"])
    assert (verdict.key, "example.org") == (shown["key"], shown["site"])
    assert {"id": "01" * 20, "address": "10.0.0.1:4160"} == shown["owner"]
    assert [{"id": "02" * 20, "address": "[::1]:4160"}] == shown["backups"]


def test_the_check_says_why() -> None:
    inside, outside, excluded, none = explain(
        JOB, ["https://example.org/a", "https://other.example/", "https://example.org/old/x", "nonsense"]
    )
    assert "In scope: example.org is the host of a seed." == sentences(inside)[0]
    assert sentences(outside)[0].startswith("Not in scope: other.example is not the host of a seed")
    assert "'/old/'" in sentences(excluded)[0]
    assert 1 == len(sentences(none))
    (strange,) = explain(JOB, ["HTTPS://EXAMPLE.org/a#part"])
    assert "The crawl takes it for https://example.org/a." in sentences(strange)


def test_a_failure_is_told_in_words() -> None:
    assert "the host's name has no address, or no name server answers" == way(state="failed", reason="dns")["reason"]
    assert way(state="done")["reason"] is None


def test_the_history_has_what_is_known() -> None:
    shown = way(state="done", captured="2024-01-02T03:04:05Z", rounds=2, due_at=2e9)["history"]
    assert [1704164645, None, 2e9] == [event["at"] for event in shown]
    assert "2 times" in shown[1]["what"]
    pending = way(state="pending", depth=1, tries=1, due_at=2e9)["history"]
    assert ["the next try begins, after 1 try that failed", "it was found 1 link away from a seed"] == [
        event["what"] for event in pending
    ]
    assert [] == way(state="unknown", captured="nonsense")["history"]
    (finished,) = way(state="finished")["history"]
    assert "fingerprint" in finished["what"]
