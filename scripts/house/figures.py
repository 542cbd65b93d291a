"""All figures of the house in the order in which they are printed, each with its aim and its findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scripts.house import shape
from scripts.house.documents import departing_documents
from scripts.house.imports import folder_circles, module_circles, unknown_rooms, upward
from scripts.house.outside import assigned_from_outside, attribute
from scripts.house.prose import departing_sentences, prose_by_room, rules_broken
from scripts.house.sentences import RULES
from scripts.house.source import PACKAGE, HouseFinding, Source, room_of
from scripts.house.tested import untested


@dataclass(frozen=True, slots=True)
class HouseFigure:
    """A measure of the house: its `findings` are the places that miss the aim, the worst first."""

    name: str
    aim: str
    values: Mapping[str, float]
    findings: Sequence[HouseFinding]


def figures(root: Path, everything: Sequence[Source], room: str | None = None) -> list[HouseFigure]:
    """Return the figures of the repository at `root`, whose files are `everything`.

    With `room`, these are the figures of its files, and the findings that lie there. Without, sizes and assignments
    are those of kadcrawl.
    """
    package = [source for source in everything if source.module.split(".")[0] == PACKAGE]
    code = [source for source in everything if not source.path.startswith("tests/")]
    there = [source for source in everything if room in (None, room_of(source.path))]
    sized = package if room is None else there

    def here(findings: Sequence[HouseFinding]) -> list[HouseFinding]:
        return [finding for finding in findings if room in (None, finding.room)]

    sentences = departing_sentences(there)
    rules = rules_broken(sentences)
    assigned = assigned_from_outside(sized)
    return [
        _count("import circles among modules", "0", here(module_circles(code))),
        _count("import circles among folders", "few", here(folder_circles(package))),
        _count("imports that go up", "0", here(upward(package))),
        _count("rooms that are not on a floor", "0", here(unknown_rooms(package))),
        _sizes("files per folder", shape.FOLDER_FILES_AIM, shape.folder_sizes(sized)),
        _sizes("lines per file (but the wire)", shape.FILE_LINES_AIM, shape.file_sizes(sized)),
        _sizes(
            "lines per function",
            shape.FUNCTION_LINES_AIM,
            shape.function_sizes(sized),
            shape.FUNCTION_LINES_SCREEN,
        ),
        _sizes("parameters per function", shape.PARAMETERS_AIM, shape.parameter_counts(sized)),
        HouseFigure(
            "attributes assigned from outside",
            "0",
            {"assignments": len(assigned), "attributes": len({attribute(finding) for finding in assigned})},
            assigned,
        ),
        _count("class names defined more than once", "0", here(shape.repeated_classes(code))),
        _count("helpers of tests in several files", "0", here(shape.repeated_test_helpers(everything))),
        _count("names of tests over 70 characters", "0", here(shape.long_test_names(everything))),
        _count("modules without their tests", "0", here(untested(root, package))),
        _count("sentences of documents that depart", "0", here(departing_documents(root))),
        HouseFigure(
            "first sentences that depart",
            "0",
            {"of": sum(prose_by_room(there).values()), "departing": len(sentences)}
            | {rule: rules[rule] for rule in RULES},
            sentences,
        ),
    ]


def _count(name: str, aim: str, findings: Sequence[HouseFinding]) -> HouseFigure:
    return HouseFigure(name, aim, {"count": len(findings)}, findings)


def _sizes(name: str, aim: int, sizes: Sequence[HouseFinding], also: int | None = None) -> HouseFigure:
    """Return the figure of sizes that may be `aim` at most. `also` is a second limit to count."""
    values: dict[str, float] = {
        "median": median(finding.size for finding in sizes) if sizes else 0,
        "max": max((finding.size for finding in sizes), default=0),
    }
    for limit in (aim, also):
        if limit is not None:
            values[f"over {limit}"] = sum(finding.size > limit for finding in sizes)
    return HouseFigure(name, f"at most {aim}", values, [finding for finding in sizes if finding.size > aim])


def sentences_by_room(figure: HouseFigure, sources: Sequence[Source]) -> list[tuple[str, int, int, dict[str, int]]]:
    """Return for each room its name, its pieces of prose, those that depart, and the departures by rule."""
    rows = []
    for room, pieces in sorted(prose_by_room(sources).items()):
        findings = [finding for finding in figure.findings if finding.room == room]
        rules = rules_broken(findings)
        rows.append((room, pieces, len(findings), {rule: rules[rule] for rule in RULES}))
    return rows
