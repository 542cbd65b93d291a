"""The meaning of addresses, and of answers of other peers and sites, for a peer here. The facts are arguments."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from ipaddress import ip_address
from typing import Final

from kadcrawl.cli.doctor.check_result import CheckResult, note, ok, problem
from kadcrawl.cli.view.addresses import shown
from kadcrawl.link.wire.failure_reasons import explained
from kadcrawl.system.printable import printable

Address = tuple[str, int]
BOTH_WAYS: Final = "let TCP and UDP through to this port, in both directions"


class PeerAnswer(StrEnum):
    """The outcome of a question to a peer, by TCP."""

    MEMBER = auto()
    NO_SUCH_NAME = auto()
    REFUSED = auto()
    SILENT = auto()
    OTHER_KEY = auto()
    NO_KEY = auto()
    """The other end has no key, as a swarm that was begun with --insecure."""
    KEY_WANTED = auto()
    """The other end hung up on a caller without a key."""
    NOT_A_PEER = auto()
    """The other end is no peer, or a peer of another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapFacts:
    """The facts about one --bootstrap address."""

    address: Address
    answer: PeerAnswer
    resolved: Sequence[str] = ()
    """The IP addresses of the host."""
    detail: str = ""
    udp_answers: bool | None = None
    """True if a datagram was answered, or None if none was sent, as TCP failed before."""
    same_swarm: bool = True
    """False if the directory has the crawl of another swarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """The facts about the site of a given URL."""

    host: str
    addresses: Sequence[str]
    status: int | None
    error: str | None = None
    """The reason of a failure, as in pages.jsonl, or None."""
    detail: str = ""
    seconds: float = 0.0


def addresses_finding(addresses: Sequence[str]) -> CheckResult:
    """Return the addresses of this machine that other machines may use."""
    others = [address for address in addresses if not ip_address(address).is_loopback]
    if not others:
        return note(
            "addresses",
            "this machine has only loopback addresses",
            "connect it to a network; peers on this machine alone work without one",
        )
    return ok("addresses", ", ".join(f"{address} ({_kind(address)})" for address in others))


def listen_findings(
    address: Address, errors: dict[str, OSError | None], *, is_own_peer: bool, is_chosen: bool = True
) -> list[CheckResult]:
    """Return the findings about the address to listen at.

    `errors` has the error of each protocol (TCP, UDP), or None where the port is free. `is_own_peer` says that the peer
    of --data is running, so the port may be its own, and `is_chosen` that a person gave the address.
    """
    name = shown(address)
    findings = []
    failed = {protocol: error for protocol, error in errors.items() if error is not None}
    if not failed:
        findings.append(ok("listen", f"{name} is free for TCP and UDP"))
    elif is_own_peer and all(error.errno == errno.EADDRINUSE for error in failed.values()):
        findings.append(ok("listen", f"{name} is in use, and the peer of --data is running"))
    elif not is_chosen and all(error.errno == errno.EADDRINUSE for error in failed.values()):
        advice = "`kadcrawl crawl` does not need it; for start and join choose another port with --listen"
        findings.append(note("listen", f"{name} is in use by another program", advice))
    else:
        protocols, error = " and ".join(failed), next(iter(failed.values()))
        findings.append(problem("listen", f"{name} cannot be used for {protocols}: {_said(error)}", _advice(error)))
    return [*findings, _reached(address[0])]


def bootstrap_findings(facts: BootstrapFacts, listening: str) -> list[CheckResult]:
    """Return the findings about one address to join at, for a peer that listens at the IP address `listening`."""
    name = printable(shown(facts.address))
    host = printable(facts.address[0])
    match facts.answer:
        case PeerAnswer.NO_SUCH_NAME:
            said, advice = f"the name {host} has no address here", "check the name, or give the IP address"
        case PeerAnswer.REFUSED:
            said = f"{name} is there and refuses TCP: no program listens at this port"
            advice = "start the peer there, with this port and not on loopback (--listen), or check the port"
        case PeerAnswer.SILENT:
            said = f"{name} does not answer by TCP: a firewall drops it, or the machine is off"
            advice = f"check the address and the firewalls on the way: {BOTH_WAYS}"
        case PeerAnswer.OTHER_KEY:
            said = f"a program answers at {name}, and does not accept the key"
            advice = "give the key of that swarm: --key-file FILE with a copy of swarm.key of one of its peers"
        case PeerAnswer.NO_KEY:
            said = f"a program answers at {name}, and has no key: a peer begun with --insecure, or no peer"
            advice = "check the port; a swarm begun with --insecure is joined with --insecure, from its own machine"
        case PeerAnswer.KEY_WANTED:
            said = f"a program at {name} hangs up on a caller without a key"
            advice = "give the key of that swarm: --key-file FILE, or KADCRAWL_KEY"
        case PeerAnswer.NOT_A_PEER:
            said = f"{name} {printable(facts.detail)}"
            advice = "check the port; all peers of a swarm need the same version of kadcrawl"
        case PeerAnswer.MEMBER:
            return [*_member_findings(name, facts), *_way_back(name, facts, listening)]
    return [problem("bootstrap", said, advice), *_way_back(name, facts, listening)]


def site_findings(facts: SiteFacts) -> list[CheckResult]:
    """Return the findings about the site of a URL."""
    host = printable(facts.host)
    if not facts.addresses:
        return [
            problem(
                "DNS",
                f"{host} has no address, or no name server answers: {printable(facts.detail)}",
                "check the name, and the name servers in /etc/resolv.conf",
            )
        ]
    findings = [ok("DNS", f"{host} is at {', '.join(facts.addresses)}")]
    if facts.error is None and facts.status is not None:
        said = f"it answers with status {facts.status} after {facts.seconds:.1f} s"
        if facts.status >= 400:
            reason = explained(f"http_{facts.status}")
            findings.append(note("site", f"{said}: {reason.meaning}", reason.advice or "try the URL in a browser"))
        else:
            findings.append(ok("site", said))
    elif facts.error is not None:
        reason = explained(facts.error)
        detail = f" ({printable(facts.detail)})" if facts.detail else ""
        advice = reason.advice or "try the URL in a browser, here and on another machine"
        if facts.error == "address_refused":  # No URL has failed yet, so there is nothing to retry.
            advice = "if it is yours, crawl it with --allow-network and its network"
        findings.append(problem("site", f"{facts.error}: {reason.meaning}{detail}", advice))
    return findings


def _member_findings(name: str, facts: BootstrapFacts) -> list[CheckResult]:
    findings = [ok("bootstrap", f"a member answers at {name} by TCP")]
    if facts.udp_answers:
        findings.append(ok("bootstrap", f"a member answers at {name} by UDP"))
    elif facts.udp_answers is not None:
        findings.append(
            problem(
                "bootstrap",
                f"{name} answers by TCP, and not by UDP",
                f"a peer needs both: {BOTH_WAYS}",
            )
        )
    if not facts.same_swarm:
        findings.append(
            problem(
                "bootstrap",
                f"{name} is of another swarm than --data, with other seeds",
                "choose another directory with --data, or another --bootstrap",
            )
        )
    return findings


def _way_back(name: str, facts: BootstrapFacts, listening: str) -> list[CheckResult]:
    """Return a problem if the other peer cannot reach a peer that listens at this IP address."""
    ours = ip_address(listening)
    theirs = [there for there in map(ip_address, facts.resolved) if there.version == ours.version]
    advice = "choose another address of this machine with --listen"
    if facts.resolved and not theirs:
        return [problem("listen", f"{listening} is not of the IP version of {name}", advice)]
    if ours.is_loopback and theirs and not theirs[0].is_loopback:
        return [problem("listen", f"{listening} is a loopback address, which {name} cannot reach", advice)]
    return []


def _reached(host: str) -> CheckResult:
    """Return which machines can reach a peer that listens at this address."""
    address = ip_address(host)
    if address.is_loopback:
        said = f"{host} is a loopback address: only peers on this machine can join (--listen chooses another)"
        return ok("listen", said)
    if address.is_unspecified:
        return ok("listen", f"{host} means all addresses of this machine")
    if address.is_global:
        return ok("listen", f"{host} is public: everybody reaches it, if a firewall lets TCP and UDP through")
    return ok("listen", f"{host} is {_kind(host)}: machines of the same network reach it, others do not")


def _kind(host: str) -> str:
    address = ip_address(host)
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "public" if address.is_global else "private"


def _said(error: OSError) -> str:
    words = {
        errno.EADDRINUSE: "another program has it",
        errno.EADDRNOTAVAIL: "this machine has no such address",
        errno.EACCES: "only root may use this port",
    }
    return words.get(error.errno or 0) or error.strerror or str(error)


def _advice(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "end that program (ss -lntup shows it), or choose another port with --listen"
    if error.errno == errno.EADDRNOTAVAIL:
        return "choose one of the addresses above, or 0.0.0.0, with --listen"
    if error.errno == errno.EACCES:
        return "choose a port from 1024 up with --listen"
    return "choose another address with --listen"
