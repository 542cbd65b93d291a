"""The wheel has every module of the tree, the sdist every file for tests, and the metadata every index field."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts.dist import documents
from scripts.dist.pythons import OLDEST, pythons
from scripts.dist.steps import DistError, run
from scripts.native_build import compiler, sources

pytestmark = pytest.mark.xdist_group("dist")
"""Keeps these tests in one process, which prepares their fixtures once."""

ROOT = Path(__file__).parent.parent.parent
INSTALLED = {"kadcrawl": "kadcrawl", "sim": "kadcrawl_sim"}
"""Folder of the tree -> package that is installed."""
BUILD = """
import sys
from setuptools import build_meta
place, builds = sys.argv[1:]  # setuptools puts its own in there.
for build in builds.split():
    getattr(build_meta, build)(place)
"""
NATIVE = "kadcrawl/crawl/content/_native.abi3.so"


class Archives(NamedTuple):
    """The contents of the two files."""

    wheel: set[str]
    sdist: set[str]
    """Names of the sdist, without the top folder."""
    metadata: Message
    name: str
    """The file name of the wheel."""
    pure: set[str]
    """The contents of the wheel without native code."""
    pure_name: str


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    """Build both archives from a copy of the tracked and new files, so that no earlier build is in it."""
    if not (ROOT / ".git").exists():
        pytest.skip("only git knows what is of the project and what is left over")
    place = tmp_path_factory.mktemp("dist")
    tree = place / "tree"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in files.stdout.decode().splitlines():
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
    _build(tree, place, "build_sdist build_wheel")
    _build(tree, place / "pure", "build_wheel", KADCRAWL_PURE="1")
    (sdist,), (wheel,), (pure,) = place.glob("*.tar.gz"), place.glob("*.whl"), place.glob("pure/*.whl")
    with tarfile.open(sdist) as packed:
        in_sdist = {name.partition("/")[2] for name in packed.getnames()}
    with zipfile.ZipFile(wheel) as zipped:
        in_wheel = set(zipped.namelist())
        (metadata,) = (name for name in in_wheel if name.endswith(".dist-info/METADATA"))
        text = zipped.read(metadata).decode()
    with zipfile.ZipFile(pure) as zipped:
        in_pure = set(zipped.namelist())
    return Archives(in_wheel, in_sdist, Parser().parsestr(text), wheel.name, in_pure, pure.name)


def _build(tree: Path, place: Path, builds: str, **variables: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", BUILD, str(place), builds]
    environment = {**os.environ, **variables}
    build = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stderr


def test_the_wheel_has_each_module_of_the_tree_and_no_other(archives: Archives) -> None:
    wanted = {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, package in INSTALLED.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    assert wanted == {name for name in archives.wheel if name.endswith(".py")}


@pytest.mark.skipif(compiler(os.environ) is None, reason="rustc is missing here, or KADCRAWL_PURE is set")
def test_the_wheel_has_the_native_module_for_every_python_from_3_11_on(archives: Archives) -> None:
    assert "-cp311-abi3-" in archives.name
    assert NATIVE in archives.wheel


def test_a_wheel_without_native_code_is_for_every_python_and_system(archives: Archives) -> None:
    assert archives.pure_name.endswith("-py3-none-any.whl")
    assert {name for name in archives.wheel if name.endswith(".py")} == {
        name for name in archives.pure if name.endswith(".py")
    }
    assert [] == [name for name in archives.pure if name.endswith((".so", ".rs"))]


def test_the_sdist_has_the_native_sources_and_nothing_compiled(archives: Archives) -> None:
    assert {f"native/src/{path.name}" for path in sources()} <= archives.sdist
    assert [] == [name for name in archives.sdist if name.endswith(".so")]


@pytest.mark.parametrize("package", INSTALLED.values())
def test_the_wheel_says_that_its_packages_are_typed(archives: Archives, package: str) -> None:
    assert f"{package}/py.typed" in archives.wheel


def test_the_wheel_has_the_pages_of_the_dashboard_with_the_licenses_of_their_libraries(archives: Archives) -> None:
    assets = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kadcrawl/web/assets").rglob("*") if path.is_file()}
    assert {"kadcrawl/web/assets/index.html", "kadcrawl/web/assets/vendor/LICENSE.uplot"} <= assets
    for names in (archives.wheel, archives.pure, archives.sdist):
        assert assets <= set(names)


@pytest.mark.parametrize("folder", ["docs", "fuzz", "scripts", "sim", "tests"])
def test_the_sdist_has_all_it_takes_to_test(archives: Archives, folder: str) -> None:
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in (".py", ".md", ".toml", ".json") and "__pycache__" not in path.parts
    }
    assert wanted
    assert wanted <= archives.sdist


@pytest.mark.parametrize("file", ["CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt", "ruff.toml", "setup.cfg"])
def test_the_sdist_has_what_the_commands_need(archives: Archives, file: str) -> None:
    assert file in archives.sdist


def test_the_index_shows_where_the_project_is(archives: Archives) -> None:
    urls = {line.partition(",")[0] for line in archives.metadata.get_all("Project-URL", [])}
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= urls
    assert archives.metadata["Author"] == "The kadcrawl authors"
    classifiers = archives.metadata.get_all("Classifier", [])
    assert {"Typing :: Typed", "Framework :: AsyncIO", "Programming Language :: Python :: 3.14"} <= {*classifiers}


def test_links_of_the_long_description_lead_somewhere_from_an_index(archives: Archives) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", str(archives.metadata.get_payload()))
    assert links
    assert not [link for link in links if not link.startswith(("https://", "#"))]


def test_what_only_tests_import_is_not_installed(archives: Archives) -> None:
    plain = [line for line in archives.metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    names = {re.split(r"[^\w.-]", line)[0].replace("-", "_") for line in plain}
    text = "\n".join(path.read_text() for path in (ROOT / "kadcrawl").rglob("*.py"))
    assert set() == {name for name in names if not re.search(rf"^\s*(from|import) {name}\b", text, re.M)}


def test_the_pythons_tried_are_the_oldest_and_the_newest() -> None:
    found = pythons()
    assert 1 <= len(found) <= 2
    assert all(python.version[:2] >= OLDEST for python in found)
    assert found == sorted(found)


def test_the_documents_have_the_programs_that_are_tried() -> None:
    assert "http://here/" in documents.embedding_example(ROOT, "http://here/")
    assert "simulated_swarm" in documents.simulation_example(ROOT)


def test_a_program_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    program = (sys.executable, "-c", "import sys; sys.exit('no room')")
    with pytest.raises(DistError, match=r"(?s)install: exit code 1 of .*no room"):
        run(*program, cwd=tmp_path, what="install")
    with pytest.raises(DistError, match="there is no /nowhere"):
        run("/nowhere", cwd=tmp_path, what="install")
