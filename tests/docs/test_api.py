"""The page of the Python API has all exported names, and each name on the page has a docstring."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest

import kadcrawl
import sim
from kadcrawl import Leaf, Peer, errors
from tests.support.cases import cases

TEXT = (Path(__file__).parents[2] / "docs/reference/api.md").read_text()
SECTIONS = {found[1]: found[2] for found in re.finditer(r"^::: (\S+)\n((?:    .*\n)*)", TEXT, re.MULTILINE)}
IN_ERRORS = {
    name for name, kind in vars(errors).items() if inspect.isclass(kind) and kind.__module__ == errors.__name__
}
PARTS = {
    *("activity", "balancing", "borrower", "cells", "census", "client", "clock", "components", "contact", "counters"),
    *("credentials", "deliveries", "row"),
    *("environment", "journaled_job", "key_rotation", "known", "obey", "overlay", "peer_score", "resources", "runtime"),
    *("server", "state_gossip", "store", "waves", "work"),
}
"""Attributes of peers that are for tests and tools."""
FOR_SINKS = {
    "kadcrawl.sinks.sink.BlockingSink",
    "kadcrawl.sinks.batch.DocumentBatch",
    "kadcrawl.sinks.batch.BatchSize",
}
"""Names for packages with sinks, which are too rare for the top of the package."""


def members(name: str) -> list[str]:
    return re.findall(r"^        - (\w+)$", SECTIONS[name], re.MULTILINE)


def members_on_page() -> Iterator[tuple[str, str]]:
    for name in SECTIONS:
        for member in members(name):
            yield name, member


def test_every_exported_name_is_on_the_page() -> None:
    exported = set(kadcrawl.__all__) - {"__version__"} - IN_ERRORS
    assert {f"kadcrawl.{name}" for name in exported} | {"kadcrawl.errors"} | FOR_SINKS == {
        name for name in SECTIONS if name.startswith("kadcrawl")
    }
    assert {f"sim.{name}" for name in sim.__all__} == {name for name in SECTIONS if name.startswith("sim")}


@cases(("name", "member"), list(members_on_page()))
def test_every_member_on_the_page_is_there_and_has_a_docstring(name: str, member: str) -> None:
    package, _, kind = name.rpartition(".")
    if member != "config":  # It is set by the constructor.
        assert inspect.getdoc(inspect.getattr_static(getattr(import_module(package), kind), member))


@pytest.mark.parametrize("kind", [Peer, Leaf])
def test_every_public_attribute_of_a_peer_is_on_the_page_or_a_part(kind: type) -> None:
    public = {name for name in dir(kind) if not name.startswith("_")}
    assert public - PARTS == set(members(f"kadcrawl.{kind.__name__}")) - {"config"}


def types_in(hint: object) -> Iterator[type]:
    """Yield the types that a hint is made of."""
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for part in (get_origin(hint), *get_args(hint)):
        if part is not None:
            yield from types_in(part)


@pytest.mark.parametrize("kind", [kadcrawl.CrawlStatus, kadcrawl.GivenOrder, Leaf, Peer, kadcrawl.PeerStatus])
def test_methods_and_figures_have_no_type_that_is_not_public(kind: type) -> None:
    named = members(f"kadcrawl.{kind.__name__}") or [one for one in vars(kind) if one[0] != "_" and one != "of"]
    public = {getattr(kadcrawl, name) for name in kadcrawl.__all__}
    names = {name: getattr(kadcrawl, name) for name in kadcrawl.__all__}
    hidden = []
    for name in {*named} - {"config"}:
        member = inspect.getattr_static(kind, name)
        function = member.fget if isinstance(member, property) else member
        hints = get_type_hints(function, localns=names) if callable(function) else {name: get_type_hints(kind)[name]}
        hidden += [
            (name, found)
            for hint in hints.values()
            for found in types_in(hint)
            if found.__module__.startswith("kadcrawl") and found not in public
        ]
    assert [] == hidden


@cases("kind", [getattr(kadcrawl, name) for name in kadcrawl.__all__ if is_dataclass(getattr(kadcrawl, name))])
def test_a_program_can_make_every_value_that_a_setting_takes(kind: type) -> None:
    public = {getattr(kadcrawl, name) for name in kadcrawl.__all__}
    hidden = [
        (field, found)
        for field, hint in get_type_hints(kind).items()
        for found in types_in(hint)
        if found.__module__.startswith("kadcrawl") and found not in public
    ]
    assert [] == hidden


def test_every_error_has_a_docstring() -> None:
    assert [] == [name for name in IN_ERRORS if not vars(errors)[name].__doc__]
