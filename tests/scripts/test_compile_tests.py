import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.compile_tests import ROOT, compile_test, modules, sources

KEPT = """
from pathlib import Path
from hypothesis.internal.constants_ast import constants_from_module
from scripts.compile_tests import keep_constants

keep_constants(Path("sample.py"))
(kept,) = Path("storage/constants").iterdir()
kept.write_text(kept.read_text().replace("918273645", "546372819"))
import sample

print([*constants_from_module(sample).integers])
"""


def test_pytest_takes_the_compiled_module_in_place_of_its_source(tmp_path: Path) -> None:
    """The source is replaced by one of the same size and time, so only the compiled module still fails."""
    source = tmp_path / "test_sample.py"
    source.write_text("def test_sample() -> None:\n    assert [3] == [4]\n")
    os.utime(source, (1_700_000_000, 1_700_000_000))
    assert compile_test(source)
    source.write_text("def test_sample() -> None:\n    assert [3] == [3]\n")
    os.utime(source, (1_700_000_000, 1_700_000_000))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(source)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    assert "At index 0 diff: 3 != 4" in ran.stdout, "the assertion is not rewritten"


def test_a_compiled_module_is_kept_until_its_source_changes(tmp_path: Path) -> None:
    source = tmp_path / "test_sample.py"
    source.write_text("assert True\n")
    assert [compile_test(source), compile_test(source)] == [True, False]
    source.write_text("assert True  # Longer.\n")
    assert compile_test(source)


def test_test_modules_and_conftests_are_compiled() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in modules()}
    assert {"tests/conftest.py", "tests/sinks/conftest.py", "tests/scripts/test_compile_tests.py"} <= found


def test_hypothesis_takes_the_kept_constants_in_place_of_the_source(tmp_path: Path) -> None:
    """The kept constants are changed, so only they have the number that is found."""
    (tmp_path / "sample.py").write_text("SAMPLE = 918273645\n")
    ran = subprocess.run(
        [sys.executable, "-c", KEPT], capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "storage"), "PYTHONPATH": f"{ROOT}"},
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == ("[546372819]\n", "")


def test_all_packages_have_their_constants_kept() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in sources()}
    assert {"kadcrawl/urls.py", "scripts/compile_tests.py", "sim/loop.py", "fuzz/__main__.py"} <= found
