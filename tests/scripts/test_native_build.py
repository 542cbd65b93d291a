"""The native module is compiled where a compiler exists, anew if its sources change, and nothing fails without it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import native_build
from scripts.native_build import BuildError, compiler, digest

ROOT = Path(__file__).parent.parent.parent
needs_compiler = pytest.mark.skipif(
    compiler(os.environ) is None, reason="rustc is missing here, or KADCRAWL_PURE is set: nothing can be compiled"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with the native code in it."""
    shutil.copytree(ROOT / "native", tmp_path / "native")
    (tmp_path / native_build.IN_PLACE).parent.mkdir(parents=True)
    return tmp_path


SMALL_CRATE = """
#[no_mangle]
pub static DIGEST: &str = env!("NATIVE_SOURCES_DIGEST");
"""
"""A crate that compiles in a fraction of the time. `make test` and the tests of the wheel compile that of kadcrawl."""


@needs_compiler
def test_the_module_is_compiled_once_for_the_same_sources(tree: Path) -> None:
    (tree / native_build.CRATE).write_text(SMALL_CRATE)
    assert "compiled" in native_build.ensure(tree)
    assert "up to date" in native_build.ensure(tree)
    (tree / "native/src/more.rs").write_text("//! One more file.\n")
    assert not native_build.is_current(tree)


def test_another_source_has_another_digest(tree: Path) -> None:
    before = digest(tree)
    path = tree / native_build.CRATE
    path.write_text(path.read_text() + "// more\n")
    assert before != digest(tree)


@needs_compiler
def test_sources_that_do_not_compile_are_named_and_leave_no_module(tree: Path) -> None:
    (tree / native_build.CRATE).write_text("no rust")
    with pytest.raises(BuildError, match="rustc failed: error"):
        native_build.ensure(tree)
    assert [] == list((tree / native_build.IN_PLACE).parent.iterdir())


def test_without_a_compiler_the_error_says_so(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tree))
    with pytest.raises(BuildError, match="no rustc"):
        native_build.ensure(tree)
    monkeypatch.setattr(native_build, "ensure", lambda: native_build.build(tree / "module"))
    native_build.main()
    assert "goes without its native code: no rustc" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["1", "yes"])
def test_a_variable_asks_for_no_native_code(value: str) -> None:
    assert compiler({"PATH": os.environ["PATH"], "KADCRAWL_PURE": value}) is None


def test_unsafe_code_is_in_the_binding_only() -> None:
    crate = (ROOT / native_build.CRATE).read_text()
    assert "#![deny(unsafe_code)]" in crate
    assert 1 == crate.count("allow(unsafe_code)")
    assert {"python.rs"} == {path.name for path in native_build.sources() if "unsafe {" in path.read_text()}


def test_without_a_compiler_the_wheel_is_for_every_python_and_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "KADCRAWL_PURE": "1"}
    command = (sys.executable, "-W", "ignore", "setup.py", "--quiet", "egg_info", "--egg-base", str(tmp_path))
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "built without its native code" in run.stderr
