"""``python -m scripts.dist``: build the sdist and the wheel, and try the wheel in bare environments.

Where rustc is, there are two wheels: one with native code for this system, and one without, for every system. The
environments are of the oldest and of the newest Python here, in a temporary directory. Each has the wheel and its
pinned dependencies (constraints.txt), and sees nothing of the repository. In each: ``kadcrawl --version``, the import
of every module, a crawl of a real site to its end, the README's embedding example, the simulator, and its pytest
fixture. Everything but the packages comes from this machine. The exit code is 1 if anything does not hold.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from kadcrawl.version import VERSION
from scripts.dist.bare import Bare
from scripts.dist.build import build, check_metadata
from scripts.dist.local_site import serving, site_directory
from scripts.dist.pythons import pythons
from scripts.dist.steps import DistError, step

ROOT: Final = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    """Build and try."""
    parser = argparse.ArgumentParser(description="Build sdist and wheel, and try the wheel in bare environments.")
    parser.add_argument("--site", type=Path, metavar="DIR", help="crawl this site, not one out of a Debian package")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        _dist(options.site)
    except DistError as error:
        sys.exit(f"dist: {error}")
    except KeyboardInterrupt:
        sys.exit(11)
    print(f"everything holds, after {time.monotonic() - began:.0f} s: the files are in dist/")


def _dist(given_site: Path | None) -> None:
    found = pythons()
    print(f"kadcrawl {VERSION}, tried with {' and '.join(map(str, found))}", flush=True)
    directory = site_directory(given_site)
    built = build(ROOT, ROOT / "dist")
    print(f"  built {built}", flush=True)
    step("metadata", lambda: check_metadata(built, ROOT))
    with serving(ROOT, directory) as site, tempfile.TemporaryDirectory(prefix="kadcrawl-dist-") as place:
        print(f"a site of {len(site.statuses)} URLs is at {site.url}", flush=True)
        for python in found:
            print(python, flush=True)
            bare = Bare(python, ROOT, Path(place) / ".".join(map(str, python.version)))
            bare.try_wheel(built.wheel, VERSION, site)
            bare.try_pure(built.pure)


if __name__ == "__main__":
    main()
