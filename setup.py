"""What setup.cfg cannot say: which packages are installed, and a README whose links are good on a package index."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
FILES = "https://github.com/kadcrawl/kadcrawl/blob/main/"
"""Where the files are that README.md links to."""
PICTURES = "https://raw.githubusercontent.com/kadcrawl/kadcrawl/main/"
"""Where its pictures are as pictures, not as pages about them."""


def long_description() -> str:
    """Return README.md with its links to files of the repository made absolute."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"(!\[[^]]*\])\((?![a-z]+:)([^)\s]+)\)", rf"\1({PICTURES}\2?sanitize=true)", readme)
    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", rf"]({FILES}\1)", readme)


setup(
    long_description=long_description(),
    # The simulator is `sim` in the repository, and `kadcrawl_sim` for everybody who installs it.
    package_dir={"kadcrawl_sim": "sim"},
    packages=[
        *find_packages(include=["kadcrawl", "kadcrawl.*"]),
        "kadcrawl_sim",
        *(f"kadcrawl_sim.{package}" for package in find_packages("sim")),
    ],
)
