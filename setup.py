"""What setup.cfg cannot say: the packages, the optional native module, and a README with links for a package index."""

import os
import re
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))  # A build backend is not started in the source tree.

from scripts import native_build  # noqa: E402

FILES = "https://github.com/kadcrawl/kadcrawl/blob/main/"
"""Where the files are that README.md links to."""
PICTURES = "https://raw.githubusercontent.com/kadcrawl/kadcrawl/main/"
"""Where its pictures are as pictures, not as pages about them."""


def long_description() -> str:
    """Return README.md with its links to files of the repository made absolute."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"(!\[[^]]*\])\((?![a-z]+:)([^)\s]+)\)", rf"\1({PICTURES}\2?sanitize=true)", readme)
    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", rf"]({FILES}\1)", readme)


class BuildNative(build_ext):
    """Compiles the native module by rustc. If that fails, the package is built without it."""

    def build_extension(self, ext: Extension) -> None:
        try:
            native_build.build(Path(self.get_ext_fullpath(ext.name)), ROOT)
        except native_build.BuildError as error:
            print(f"kadcrawl is built without its native code: {error}", file=sys.stderr)


HAS_COMPILER = native_build.compiler(os.environ) is not None
if not HAS_COMPILER:
    print(
        "kadcrawl is built without its native code, as there is no rustc or KADCRAWL_PURE is set. It works, and finds "
        "links in more CPU time.",
        file=sys.stderr,
    )
NATIVE = Extension(
    native_build.MODULE,
    [str(path.relative_to(ROOT)) for path in native_build.sources(ROOT)],
    py_limited_api=True,
    optional=True,
)

setup(
    long_description=long_description(),
    cmdclass={"build_ext": BuildNative},
    ext_modules=[NATIVE] if HAS_COMPILER else [],
    # The module is for all later releases of CPython as well. Without it the wheel is for every Python and system.
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if HAS_COMPILER else {},
    # The simulator is `sim` in the repository, and `kadcrawl_sim` for everybody who installs it.
    package_dir={"kadcrawl_sim": "sim"},
    packages=[
        *find_packages(include=["kadcrawl", "kadcrawl.*"]),
        "kadcrawl_sim",
        *(f"kadcrawl_sim.{package}" for package in find_packages("sim")),
    ],
)
