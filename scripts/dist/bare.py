"""A bare environment has a Python, the wheel and its dependencies, and nothing of the repository."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.dist import documents
from scripts.dist.build import PURE
from scripts.dist.local_site import LocalSite
from scripts.dist.pythons import Python
from scripts.dist.steps import DistError, run, step, without_python_settings
from scripts.kadcrawl_run import page_lines

PEERS: Final = 2
SEEDS: Final = 5
OURS: Final = ("kadcrawl", "kadcrawl_sim")
EXTRAS: Final = {
    "bson": "mongodb",
    "matplotlib": "papers",
    "numpy": "papers",
    "opentelemetry": "traces",
    "pyarrow": "parquet",
    "pymongo": "mongodb",
    "pytest": "sim",
    "rbloom": "fast-history",
    "sklearn": "papers",
}
"""Packages that a module may lack in a bare environment, and the extra that brings each."""


class Bare:
    """One environment, and a directory beside it in which everything runs."""

    def __init__(self, python: Python, root: Path, place: Path) -> None:
        self._python = python
        self._root = root
        self._bin = place / "venv" / "bin"
        self._venv = place / "venv"
        self._home = place / "home"
        self._home.mkdir(parents=True)
        self._env = {"PATH": f"{self._bin}:/usr/bin:/bin", "HOME": str(self._home), "LANG": "C.UTF-8"}

    def try_wheel(self, wheel: Path, version: str, site: LocalSite) -> None:
        """Try everything that the wheel promises. Raises DistError at the first thing that does not hold."""
        step("install", lambda: self._install(wheel))
        step("version", lambda: self._version(version))
        step("modules", self._modules)
        step("native", lambda: self._native(is_expected=not wheel.name.endswith(PURE)))
        step("crawl", lambda: self._crawl(site))
        step("README", lambda: self._embed(site))
        step("simulator", self._simulate)
        step("fixture", lambda: self._fixture(wheel))

    def try_pure(self, wheel: Path) -> None:
        """Try the wheel without native code in place of the other. Raises DistError."""
        step("pure wheel", lambda: self._replace(wheel))

    def _replace(self, wheel: Path) -> str:
        self._pip("--force-reinstall", "--no-deps", str(wheel))
        return self._native(is_expected=False)

    def _native(self, *, is_expected: bool) -> str:
        program = "from kadcrawl.crawl.content.native_links import NATIVE; print(NATIVE is not None)"
        said = self._run(self._bin / "python", "-c", program, what="import of native code").strip()
        if said != str(is_expected):
            raise DistError(f"native code is loaded: {said}, and should be: {is_expected}; see scripts/native_build.py")
        return "links are found by native code" if is_expected else "links are found by Python code"

    def _run(self, *command: str | Path, what: str) -> str:
        return run(*command, cwd=self._home, env=self._env, what=f"{self._python}: {what}")

    def _pip(self, *requirements: str) -> None:
        options = ("--quiet", "--disable-pip-version-check", "-c", str(self._root / "constraints.txt"))
        pip: Sequence[str | Path] = (self._bin / "python", "-m", "pip", "install", *options, *requirements)
        run(*pip, cwd=self._home, env=without_python_settings(), what=f"{self._python}: install")

    def _install(self, wheel: Path) -> str:
        venv = (self._python.program, "-m", "venv", self._venv)
        run(*venv, cwd=self._home, env=without_python_settings(), what=f"{self._python}: make an environment")
        self._pip(str(wheel))
        packages = self._run(self._bin / "python", "-m", "pip", "list", "--format", "json", what="pip list")
        return f"{len(json.loads(packages))} packages"

    def _version(self, version: str) -> str:
        said = self._run(self._bin / "kadcrawl", "--version", what="kadcrawl --version").strip()
        if version not in said:
            raise DistError(f"kadcrawl --version says {said!r}, but the wheel is {version}; see kadcrawl/version.py")
        return said

    def _modules(self) -> str:
        program = Path(__file__).with_name("import_all.py").read_text(encoding="utf-8")
        found = json.loads(self._run(self._bin / "python", "-I", "-W", "error", "-c", program, what="imports"))
        if found["outside"] or found["strange"]:
            raise DistError(f"the environment is not bare: it sees {found['outside'] + found['strange']}")
        extras: set[str] = set()
        for name, needed in sorted(found["needs"].items()):
            top = needed.partition(".")[0]
            if top in OURS:
                raise DistError(
                    f"the wheel has no {needed}, which {name} imports; is there an __init__.py in its folder?"
                )
            if top not in EXTRAS:
                raise DistError(f"{name} cannot be imported, as there is no {needed}; declare it in setup.cfg")
            extras.add(EXTRAS[top])
        waiting = f"{len(found['needs'])} of them wait for extras ({', '.join(sorted(extras))})"
        return f"{found['modules']} imported, {waiting}"

    def _crawl(self, site: LocalSite) -> str:
        options = ("--peers", str(PEERS), "--delay", "0", "--allow-network", "127.0.0.0/8", "--data", "crawl")
        self._run(self._bin / "kadcrawl", "crawl", site.url, *options, what="crawl of a site")
        lines = list(page_lines(self._home / "crawl"))
        found = {line.url: line.status for line in lines}
        if found != site.statuses or len(lines) != len(found):
            wrong = sorted(set(found.items()) ^ set(site.statuses.items()))[:5]
            raise DistError(
                f"the crawl has {len(lines)} lines of {len(found)} URLs and should have {len(site.statuses)}: {wrong}"
            )
        return f"{len(found)} URLs with {PEERS} peers, each of them once, as counted without kadcrawl"

    def _embed(self, site: LocalSite) -> str:
        (self._home / "embed.py").write_text(documents.embedding_example(self._root, site.url), encoding="utf-8")
        said = self._run(self._bin / "python", "embed.py", what="the README's embedding example").splitlines()
        found = {line.split()[0] for line in said}
        wanted = {url for url, status in site.statuses.items() if status}
        if found != wanted:
            raise DistError(f"README.md: its embedding example gives {len(found)} pages and should give {len(wanted)}")
        return f"its embedding example gives {len(said)} pages"

    def _simulate(self) -> str:
        command = (self._bin / "python", "-m", "kadcrawl_sim", "run", "--seeds", str(SEEDS))
        self._run(*command, what="the simulator")
        return f"python -m kadcrawl_sim run --seeds {SEEDS}"

    def _fixture(self, wheel: Path) -> str:
        self._pip(f"{wheel}[sim]")
        test = self._home / "test_my_job.py"
        test.write_text(documents.simulation_example(self._root), encoding="utf-8")
        said = self._run(
            self._bin / "python", "-m", "pytest", "-q", "-W", "error", test, what="the example with pytest"
        )
        return f"the example of {documents.HOW_TO_SIMULATE}: {said.strip().splitlines()[-1]}"
