"""`python -m scripts.docs` writes the generated pages anew; with `--check` it only names those that are out of date.

Tests: tests/docs/test_generated_pages.py
"""

import argparse
import sys
from pathlib import Path

from scripts.docs.pages import generated_pages

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Write or check the pages. Returns the exit code, 1 if a page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m scripts.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="Write nothing; fail if a page is out of date.")
    check = parser.parse_args().check
    stale = 0
    for page, text in sorted(generated_pages(ROOT).items()):
        path = ROOT / page
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"{page} is out of date; run: make docs" if check else f"wrote {page}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
