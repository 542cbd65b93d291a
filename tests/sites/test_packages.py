"""Test that packages are fetched once, appear whole or not at all, and that each error is one sentence."""

import shutil
from pathlib import Path

import pytest

from scripts.sites import Package, SitesError, cache_directory, sites

PACKAGE = Package("made-up-doc", "usr/share/doc/made-up/html")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KADCRAWL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/sites"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a PATH of our own with the apt-get and dpkg of the test."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("sh", "mkdir", "touch"):
        (directory / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(directory))
    return directory


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_what_is_in_the_cache_is_used_without_any_program(cache: Path, programs: Path) -> None:
    root = cache / PACKAGE.name / PACKAGE.root
    root.mkdir(parents=True)
    (site,) = sites((PACKAGE,))
    assert (site.name, site.root, site.entry) == (PACKAGE.name, root, "")


def test_a_package_is_fetched_and_unpacked_once(cache: Path, programs: Path, tmp_path: Path) -> None:
    program(programs, "apt-get", f"echo run >> {tmp_path}/runs; touch $2.deb")
    program(programs, "dpkg", f"mkdir -p $3/{PACKAGE.root}; touch $3/{PACKAGE.root}/index.html")

    assert sites((PACKAGE,)) == sites((PACKAGE,))

    assert (tmp_path / "runs").read_text() == "run\n"
    assert [entry.name for entry in cache_directory().iterdir()] == [PACKAGE.name]


@pytest.mark.parametrize(
    ("apt_get", "dpkg", "why"),
    [
        (None, "exit 0", "made-up-doc cannot be fetched: this machine has no apt-get"),
        ("exit 0", None, "made-up-doc cannot be fetched: this machine has no dpkg"),
        ("echo E: no lists >&2; exit 100", "exit 0", "failed: E: no lists"),
        ("touch $2.deb", "echo broken archive >&2; exit 2", "failed: broken archive"),
        ("touch $2.deb", "exit 0", "made-up-doc.deb has no usr/share/doc/made-up/html/index.html"),
    ],
)
def test_a_failure_is_one_sentence_and_leaves_nothing_behind(
    programs: Path, cache: Path, apt_get: str | None, dpkg: str | None, why: str
) -> None:
    for name, script in (("apt-get", apt_get), ("dpkg", dpkg)):
        if script is not None:
            program(programs, name, script)
    with pytest.raises(SitesError) as caught:
        sites((PACKAGE,))
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not cache.exists() or not list(cache.iterdir())
