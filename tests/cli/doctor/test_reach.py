"""Addresses and answers of the network become outcomes that tell the cases apart."""

import errno
import os

import pytest

from kadcrawl.cli.doctor.check_result import CheckOutcome
from kadcrawl.cli.doctor.reach import (
    BootstrapFacts,
    PeerAnswer,
    SiteFacts,
    addresses_finding,
    bootstrap_findings,
    listen_findings,
    site_findings,
)

FREE: dict[str, OSError | None] = {"TCP": None, "UDP": None}
THERE = ("10.0.0.1", 4160)


def failed(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def test_the_addresses_of_a_machine_are_named_with_their_kind() -> None:
    finding = addresses_finding(["127.0.0.1", "10.0.0.2", "8.8.8.8", "fe80::1", "2a00:1450::1"])
    assert "10.0.0.2 (private), 8.8.8.8 (public), fe80::1 (link-local), 2a00:1450::1 (public)" == finding.said
    assert CheckOutcome.NOTE is addresses_finding(["127.0.0.1", "::1"]).outcome


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("127.0.0.1", "only peers on this machine"),
        ("::1", "only peers on this machine"),
        ("10.0.0.2", "10.0.0.2 is private"),
        ("8.8.8.8", "8.8.8.8 is public"),
        ("0.0.0.0", "all addresses of this machine"),
    ],
)
def test_a_free_address_is_told_with_the_machines_that_reach_it(host: str, says: str) -> None:
    free, reached = listen_findings((host, 4160), FREE, is_own_peer=False)
    assert (CheckOutcome.OK, CheckOutcome.OK) == (free.outcome, reached.outcome)
    assert "is free for TCP and UDP" in free.said
    assert says in reached.said


@pytest.mark.parametrize(
    ("errors", "says", "advice"),
    [
        ({"TCP": failed(errno.EADDRINUSE), "UDP": None}, "for TCP: another program has it", "another port"),
        ({"TCP": None, "UDP": failed(errno.EADDRINUSE)}, "for UDP: another program has it", "another port"),
        (
            {"TCP": failed(errno.EADDRNOTAVAIL), "UDP": failed(errno.EADDRNOTAVAIL)},
            "for TCP and UDP: this machine has no such address",
            "one of the addresses above",
        ),
        ({"TCP": failed(errno.EACCES), "UDP": None}, "only root may use this port", "from 1024 up"),
        ({"TCP": failed(errno.ENOBUFS), "UDP": None}, os.strerror(errno.ENOBUFS), "another address"),
    ],
)
def test_an_address_that_cannot_be_used_is_a_problem(errors: dict[str, OSError | None], says: str, advice: str) -> None:
    finding = listen_findings(("127.0.0.1", 80), errors, is_own_peer=False)[0]
    assert finding.outcome is CheckOutcome.PROBLEM
    assert says in finding.said
    assert advice in finding.advice


def test_the_port_of_the_running_peer_is_no_problem() -> None:
    errors: dict[str, OSError | None] = {"TCP": failed(errno.EADDRINUSE), "UDP": failed(errno.EADDRINUSE)}
    assert CheckOutcome.OK is listen_findings(THERE, errors, is_own_peer=True)[0].outcome
    errors["UDP"] = failed(errno.EACCES)
    assert CheckOutcome.PROBLEM is listen_findings(THERE, errors, is_own_peer=True)[0].outcome


def test_a_default_port_that_another_program_has_is_only_noted() -> None:
    errors: dict[str, OSError | None] = {"TCP": failed(errno.EADDRINUSE), "UDP": None}
    finding = listen_findings(THERE, errors, is_own_peer=False, is_chosen=False)[0]
    assert (CheckOutcome.NOTE, True) == (finding.outcome, "--listen" in finding.advice)


@pytest.mark.parametrize(
    ("answer", "says", "advice"),
    [
        (PeerAnswer.NO_SUCH_NAME, "has no address", "check the name"),
        (PeerAnswer.REFUSED, "refuses TCP", "start the peer there"),
        (PeerAnswer.SILENT, "does not answer", "firewalls"),
        (PeerAnswer.OTHER_KEY, "does not accept the key", "key of that swarm"),
        (PeerAnswer.NO_KEY, "has no key", "--insecure"),
        (PeerAnswer.KEY_WANTED, "without a key", "--key-file"),
        (PeerAnswer.NOT_A_PEER, "10.0.0.1:4160 speaks ?[2J", "same version"),
    ],
)
def test_each_way_not_to_reach_a_member_is_told_apart(answer: PeerAnswer, says: str, advice: str) -> None:
    facts = BootstrapFacts(address=THERE, answer=answer, detail="speaks \x1b[2J")
    (finding,) = bootstrap_findings(facts, "10.0.0.2")
    assert finding.outcome is CheckOutcome.PROBLEM
    assert says in finding.said
    assert advice in finding.advice
    assert finding.said.isprintable()


@pytest.mark.parametrize(
    ("udp_answers", "same_swarm", "outcomes"),
    [
        (True, True, [CheckOutcome.OK, CheckOutcome.OK]),
        (False, True, [CheckOutcome.OK, CheckOutcome.PROBLEM]),
        (True, False, [CheckOutcome.OK, CheckOutcome.OK, CheckOutcome.PROBLEM]),
    ],
)
def test_a_member_must_answer_by_udp_too_and_be_of_the_swarm(
    udp_answers: bool, same_swarm: bool, outcomes: list[CheckOutcome]
) -> None:
    facts = BootstrapFacts(
        address=THERE, answer=PeerAnswer.MEMBER, resolved=[THERE[0]], udp_answers=udp_answers, same_swarm=same_swarm
    )
    assert outcomes == [finding.outcome for finding in bootstrap_findings(facts, "0.0.0.0")]


@pytest.mark.parametrize(
    ("listening", "resolved", "says"),
    [
        ("127.0.0.1", ["10.0.0.1"], "is a loopback address, which 10.0.0.1:4160 cannot reach"),
        ("127.0.0.1", ["127.0.0.5"], None),
        ("0.0.0.0", ["10.0.0.1"], None),
        ("10.0.0.2", ["2a00:1450::1"], "is not of the IP version"),
        ("10.0.0.2", ["2a00:1450::1", "10.0.0.1"], None),
    ],
)
def test_a_peer_must_listen_where_the_others_reach_it(listening: str, resolved: list[str], says: str | None) -> None:
    facts = BootstrapFacts(address=THERE, answer=PeerAnswer.MEMBER, resolved=resolved, udp_answers=True)
    problems = [one for one in bootstrap_findings(facts, listening) if one.outcome is CheckOutcome.PROBLEM]
    assert (says is not None) is bool(problems)
    if says is not None:
        assert says in problems[0].said


@pytest.mark.parametrize(
    ("facts", "outcomes", "says"),
    [
        (SiteFacts(host="a", addresses=(), status=None, detail="no"), [CheckOutcome.PROBLEM], "a has no address"),
        (SiteFacts(host="a", addresses=("1.2.3.4",), status=200), [CheckOutcome.OK, CheckOutcome.OK], "status 200"),
        (
            SiteFacts(host="a", addresses=("1.2.3.4",), status=403),
            [CheckOutcome.OK, CheckOutcome.NOTE],
            "the site refuses access",
        ),
        (
            SiteFacts(host="a", addresses=("1.2.3.4",), status=None, error="tls", detail="expired"),
            [CheckOutcome.OK, CheckOutcome.PROBLEM],
            "tls: the certificate is not valid, or TLS failed (expired)",
        ),
    ],
)
def test_a_site_is_told_as_the_crawl_would_tell_it(facts: SiteFacts, outcomes: list[CheckOutcome], says: str) -> None:
    findings = site_findings(facts)
    assert outcomes == [finding.outcome for finding in findings]
    assert says in findings[-1].said
    assert all(finding.advice for finding in findings if finding.outcome is not CheckOutcome.OK)


def test_a_refused_address_is_told_with_the_option_that_allows_it_and_not_with_a_retry() -> None:
    """The doctor is asked before the crawl, so nothing has failed."""
    (_, finding) = site_findings(SiteFacts(host="a", addresses=("10.0.0.1",), status=None, error="address_refused"))
    assert "if it is yours, crawl it with --allow-network and its network" == finding.advice
