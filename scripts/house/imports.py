"""Imports among modules: circles, and imports that go up.

Each import statement counts, also those under TYPE_CHECKING and inside functions. That the import of a module runs the
`__init__` of its packages does not count: nearly every module would be in a circle with the front door.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scripts.house.rooms import is_room, may_import
from scripts.house.source import PACKAGE, HouseFinding, Source, room_of

Graph = Mapping[str, set[str]]


@dataclass(frozen=True, slots=True)
class Import:
    """An import of one file by another, both as paths, and the line that has it."""

    importer: str
    imported: str
    line: int


def imported_names(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the dotted name of each imported module or name, with its line: `a.b` for `from a import b`."""
    package = source.module if source.is_package else source.module.rpartition(".")[0]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def imports(sources: Sequence[Source]) -> list[Import]:
    """Return the imports among these files, in order of file and line."""
    path_of = {source.module: source.path for source in sources}
    found = []
    for source in sources:
        for name, line in imported_names(source):
            module = name if name in path_of else name.rpartition(".")[0]
            if module in path_of and path_of[module] != source.path:
                found.append(Import(source.path, path_of[module], line))
    return found


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of nodes that reach each other, each group in order."""
    reached = {node: _reached(graph, node) for node in sorted(graph)}
    groups = {
        tuple(sorted(other for other in reached[node] if node in reached.get(other, ())))
        for node in reached
        if node in reached[node]
    }
    return [list(group) for group in sorted(groups)]


def _reached(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        for node in graph.get(ahead.pop(), ()):
            if node not in reached:
                reached.add(node)
                ahead.append(node)
    return reached


def module_circles(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each circle of modules."""
    return _circles_among(imports(sources), {source.path: source.path for source in sources})


def folder_circles(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each circle of folders.

    A file right under kadcrawl/ stands for itself; the front door is left out.
    """
    inside = [source for source in sources if room_of(source.path) != PACKAGE]
    return _circles_among(
        imports(inside), {source.path: source.path if source.folder == PACKAGE else source.folder for source in inside}
    )


def _circles_among(arrows: Sequence[Import], node_of: Mapping[str, str]) -> list[HouseFinding]:
    graph: dict[str, set[str]] = defaultdict(set)
    for arrow in arrows:
        if node_of[arrow.importer] != node_of[arrow.imported]:
            graph[node_of[arrow.importer]].add(node_of[arrow.imported])
    found = []
    for group in circles(graph):
        first = next(a for a in arrows if node_of[a.importer] == group[0] and node_of[a.imported] in group[1:])
        found.append(
            HouseFinding(first.importer, first.line, f"circle of {len(group)}: {', '.join(group)}", len(group))
        )
    return sorted(found, key=lambda finding: -finding.size)


def upward(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each import that goes up, or sideways without leave, between rooms on floors."""
    return [
        HouseFinding(arrow.importer, arrow.line, f"{room_of(arrow.importer)} imports {arrow.imported}")
        for arrow in imports(sources)
        if is_room(room_of(arrow.importer)) and is_room(room_of(arrow.imported))
        if not may_import(arrow.importer, arrow.imported)
    ]


def unknown_rooms(sources: Sequence[Source]) -> list[HouseFinding]:
    """Return a finding for each room of the package that is on no floor. `upward` cannot judge their imports."""
    files: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        if not is_room(room_of(source.path)):
            files[room_of(source.path)].append(source.path)
    return [
        HouseFinding(paths[0], 1, f"no floor has the room {room!r} ({len(paths)} files)", len(paths))
        for room, paths in sorted(files.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
