"""`python -m scripts.figures NAME...` measures figures anew and keeps them in docs/figures/, with date and machine.

Measure on a machine that does nothing else. `--list` names all, and says how long each takes. A campaign runs in
blocks; those that are finished are kept in bench-data/ and are not run again until `--again` is given. `--only`
measures single experiments of the papers anew: each depends on its seed alone, so the others of its file stay as they
are.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kadcrawl.version import VERSION
from scripts.figures.campaigns import total
from scripts.figures.measurements import FILE, MEASUREMENTS, Measurement

ROOT: Final = Path(__file__).resolve().parents[2]
KEPT: Final = ROOT / "docs/figures"
PARTS: Final = ROOT / "bench-data/figures"


class FiguresError(Exception):
    """A measurement has no result. The text says why in one sentence."""


def main() -> None:
    """Measure what the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m scripts.figures", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures to measure; --list names them")
    parser.add_argument("--list", action="store_true", help="list the figures, with the minutes each takes")
    parser.add_argument("--again", action="store_true", help="run finished blocks of a campaign again")
    parser.add_argument("--blocks", type=int, metavar="N", help="the number of blocks of a campaign")
    parser.add_argument(
        "--only", action="append", default=[], metavar="EXPERIMENT", help="measure only this part of a file anew"
    )
    options = parser.parse_args()
    if options.list or not options.names:
        for name, measurement in MEASUREMENTS.items():
            print(f"{name:16} {measurement.minutes:4g} min  {measurement.title}")
        return
    if unknown := set(options.names) - MEASUREMENTS.keys():
        parser.error(f"no such figures: {', '.join(sorted(unknown))}; see --list")
    if options.only and not all(MEASUREMENTS[name].writes_directory for name in options.names):
        parser.error("--only is for the figures of the papers' experiments")
    KEPT.mkdir(exist_ok=True)
    for name in options.names:
        try:
            figures = _measure(name, MEASUREMENTS[name], options.blocks, options.again, options.only)
            _keep(name, renewed(_kept(name), figures) if options.only else figures)
        except FiguresError as error:
            sys.exit(f"figures: {error}")


def renewed(kept: Mapping[str, Any], some: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kept experiments, with some of them measured anew. Raises FiguresError for one that is not kept."""
    if missing := some.keys() - kept.keys():
        raise FiguresError(f"nothing is kept of {', '.join(sorted(missing))}: measure the file without --only")
    return {**kept, **some}


def _kept(name: str) -> Mapping[str, Any]:
    """Return the figures of a kept file. Raises FiguresError if there is none."""
    try:
        kept: dict[str, Any] = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))["figures"]
    except FileNotFoundError:
        raise FiguresError(f"nothing is kept of {name}: measure it without --only") from None
    return kept


def _measure(name: str, measurement: Measurement, blocks: int | None, again: bool, only: Sequence[str] = ()) -> Any:
    """Return the figures that the command wrote. Raises FiguresError."""
    parts = PARTS / name
    if again:
        shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True, exist_ok=True)
    if measurement.make is not None:
        subprocess.run(["make", measurement.make], cwd=ROOT, check=True)
    if measurement.blocks == 1:
        more = tuple(word for experiment in only for word in ("--only", experiment))
        return _run(name, measurement, more, parts / "figures.json")
    reports = []
    for block in range(blocks or measurement.blocks):
        first = 1 + block * measurement.block_seeds
        path = parts / f"{first}.json"
        if path.exists():
            reports.append(json.loads(path.read_text(encoding="utf-8")))
        else:
            print(f"figures: {name}, block {block + 1} of {blocks or measurement.blocks}", flush=True)
            reports.append(_run(name, measurement, ("--first-seed", str(first)), path))
    return total(reports)


def _run(name: str, measurement: Measurement, more: tuple[str, ...], path: Path) -> Any:
    """Run the command and return what it wrote. A file of an interrupted run does not stay."""
    unfinished = path.with_suffix(".unfinished")
    words = [str(unfinished) if word == FILE else word for word in measurement.command]
    done = subprocess.run([sys.executable, "-m", *words, *more], cwd=ROOT, check=False)
    written = unfinished / "results.json" if measurement.writes_directory else unfinished
    if not written.exists() or done.returncode not in ((0, 1) if measurement.may_miss else (0,)):
        raise FiguresError(f"{name}: python -m {' '.join(words)} ended with exit code {done.returncode}")
    path.write_bytes(written.read_bytes())
    if unfinished.is_dir():
        shutil.rmtree(unfinished)
    else:
        unfinished.unlink()
    return json.loads(path.read_text(encoding="utf-8"))


def _keep(name: str, figures: Any) -> None:
    command = " ".join(word for word in MEASUREMENTS[name].command if word not in ("--json", "-o", FILE))
    kept = {
        "command": f"python -m {command}",
        "date": datetime.now(UTC).date().isoformat(),
        "version": VERSION,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "figures": figures,
    }
    path = KEPT / f"{name}.json"
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(f"figures: wrote {path.relative_to(ROOT)}; python -m scripts.docs puts them into the pages")


if __name__ == "__main__":
    main()
