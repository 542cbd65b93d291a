"""``python -m scripts.compile_tests`` compiles the test modules as pytest would, once for all workers.

pytest rewrites the assertions of each test module before it compiles it, and keeps the result. Where no bytecode may be
written it keeps nothing, and each worker of ``make test`` would spend half of its start on the same work.

Hypothesis draws some of its examples from the constants in the source of this project. It keeps the constants of each
module in the directory `.hypothesis`. In a fresh clone each worker would parse all modules for them.

Tests: tests/scripts/test_compile_tests.py
"""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from _pytest.assertion import rewrite
from hypothesis.internal.constants_ast import constants_from_module

ROOT: Final = Path(__file__).resolve().parent.parent
NAMES: Final = ("conftest.py", "test_*.py")
"""The modules that pytest rewrites, unless others are registered."""
SOURCES: Final = ("kadcrawl", "scripts", "sim", "fuzz")
"""The packages whose constants Hypothesis uses."""


def modules(root: Path = ROOT) -> list[Path]:
    """Return the test modules."""
    return sorted(path for name in NAMES for path in (root / "tests").rglob(name))


def cached(path: Path) -> Path:
    """Return the file in which pytest looks for the compiled module."""
    return rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)


def compile_test(path: Path) -> bool:
    """Compile one test module where pytest looks for it, and return whether that was necessary."""
    kept = cached(path)
    if rewrite._read_pyc(path, kept) is not None:
        return False
    without_options: Any = None  # No option of pytest that changes the rewriting is in use.
    without_trace: Any = SimpleNamespace(trace=lambda text: None)
    stat, code = rewrite._rewrite_test(path, without_options)
    kept.parent.mkdir(exist_ok=True)
    rewrite._write_pyc(without_trace, code, stat, kept)
    return True


def sources(root: Path = ROOT) -> list[Path]:
    """Return the modules whose constants Hypothesis uses."""
    return sorted(path for name in SOURCES for path in (root / name).rglob("*.py"))


def keep_constants(path: Path) -> None:
    """Let Hypothesis keep the constants of one module in its directory."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    constants_from_module(module)


def main() -> None:
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        compiled = sum(processes.map(compile_test, modules(), chunksize=4))
        for _ in processes.map(keep_constants, sources(), chunksize=16):
            pass
    print(f"compiled {compiled} test modules")


if __name__ == "__main__":
    main()
