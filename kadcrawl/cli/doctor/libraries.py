"""The libraries that kadcrawl requires, against those that are installed. A decision: the metadata is an argument."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from kadcrawl.cli.doctor.check_result import CheckResult, note, ok, problem

EXTRAS: Final = {
    "fast-history": "faster filters for --history bloom",
    "fsspec": "sinks at URLs",
    "lan": "peers that find each other on the local network",
    "mongodb": "the sink mongodb:",
    "parquet": "the sink parquet:",
    "predict": "kadcrawl train and --balance predictive",
    "s3": "sinks at s3:// URLs",
    "sim": "the simulator for your own tests",
    "traces": "traces of URLs over peers, for OpenTelemetry",
}
"""The extras for users, with their purposes. Other extras are for people who work on kadcrawl."""

Installed = Callable[[str], str | None]
"""Returns the installed version of a package, or None."""


@dataclass(frozen=True, slots=True)
class Helpers:
    """The compiled parts that this Python uses, or does not."""

    uvloop: bool
    http_parser: bool
    packet_filter: bool
    native_links: bool
    """The native module that finds links."""
    is_pure: bool
    """``KADCRAWL_PURE`` switches the native module off."""


def python_finding(version: str, required: str | None) -> CheckResult:
    """Return whether kadcrawl supports this Python. `required` is the Requires-Python of its metadata."""
    if required and not SpecifierSet(required).contains(version, prereleases=True):
        return problem("Python", f"{version}, and kadcrawl needs {required}", f"install a Python {required}")
    return ok("Python", version)


def library_findings(requirements: Sequence[str], installed: Installed) -> list[CheckResult]:
    """Return the findings about the required libraries. `requirements` are those of the metadata."""
    needed = [one for one in map(Requirement, requirements) if one.marker is None or one.marker.evaluate({"extra": ""})]
    wrong = [(one, installed(one.name)) for one in needed if not _is_met(one, installed)]
    if not wrong:
        return [ok("libraries", f"all {len(needed)} that kadcrawl requires")]
    return [
        problem(
            "libraries",
            f"{one.name} {'is not installed' if version is None else version}, and kadcrawl needs {_form(one)}",
            f"pip install '{_form(one)}'",
        )
        for one, version in wrong
    ]


def loading_findings(error: str | None) -> list[CheckResult]:
    """Return a problem if a library is installed and does not load."""
    if error is None:
        return []
    advice = "pip install --force-reinstall the package that the error names, with a wheel for this Python"
    return [problem("libraries", f"a library is broken: {error}", advice)]


def extra_findings(requirements: Sequence[str], installed: Installed) -> list[CheckResult]:
    """Return the findings about the extras for users, installed or not."""
    findings, there, others = [], [], []
    for extra, brings in EXTRAS.items():
        needed = [one for one in map(Requirement, requirements) if _is_of(one, extra)]
        wrong = [one for one in needed if not _is_met(one, installed)]
        outdated = [one for one in wrong if installed(one.name) is not None]
        if not wrong:
            there.append(extra)
        elif outdated:
            said = ", ".join(f"{one.name} {installed(one.name)} (needs {one.specifier})" for one in outdated)
            findings.append(note("extras", f"{extra} is out of date: {said}", f"pip install 'kadcrawl[{extra}]'"))
        else:
            others.append(f"{extra} ({brings})")
    if there:
        findings.append(ok("extras", f"installed: {', '.join(there)}"))
    if others:
        said = f"not installed: {', '.join(others)}; pip install 'kadcrawl[NAME]' brings one"
        findings.append(ok("extras", said))
    return findings


def helper_findings(helpers: Helpers) -> list[CheckResult]:
    """Return whether the compiled helpers are in use. A peer works without them, and slower."""
    findings = []
    if not helpers.uvloop:
        findings.append(note("helpers", "uvloop is not in use: the event loop is slower", "pip install uvloop"))
    if not helpers.http_parser:
        findings.append(
            note(
                "helpers",
                "aiohttp runs without its compiled parser: each page costs more time",
                "pip install --force-reinstall aiohttp, with a wheel for this Python",
            )
        )
    if not helpers.packet_filter:
        findings.append(
            note(
                "helpers",
                "this system filters no datagrams for a peer: a flood of them costs more time",
                "let only the members' addresses through a firewall, if the port is public",
            )
        )
    if not helpers.native_links and not helpers.is_pure:
        findings.append(
            note(
                "helpers",
                "the native link extractor was not compiled: each page costs more time",
                "with rustc 1.83 or newer: pip install --force-reinstall --no-deps --no-binary kadcrawl kadcrawl",
            )
        )
    in_use = [
        *(["uvloop"] if helpers.uvloop else []),
        *(["the compiled HTTP parser"] if helpers.http_parser else []),
        *(["the native link extractor"] if helpers.native_links else []),
        *(["the system's packet filter"] if helpers.packet_filter else []),
    ]
    pure = "; KADCRAWL_PURE switches the native link extractor off" if helpers.is_pure else ""
    return [*findings, ok("helpers", f"in use: {', '.join(in_use) or 'none'}{pure}")]


def _is_of(requirement: Requirement, extra: str) -> bool:
    """Return whether only the extra brings this requirement."""
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


def _is_met(requirement: Requirement, installed: Installed) -> bool:
    version = installed(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _form(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"
