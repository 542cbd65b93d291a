"""`python -m scripts.odd_servers` asks the odd servers with curl and Scrapy, and keeps the outcomes.

Scrapy runs in an environment of its own (`make .venv-bench/.installed`). Tests: tests/scripts/test_odd_servers.py
"""

import argparse
import asyncio
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scripts.odd_servers.clients import Kadcrawl, curl_outcome, curl_version
from scripts.odd_servers.server import OddServers
from scripts.odd_servers.table import BEHAVIORS

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path("docs/explanation/odd-servers.json")
"""The file with the outcomes, which the page is made of."""


async def measured(scrapy_python: str) -> dict[str, Any]:
    """Return the outcomes of curl and Scrapy by behavior. Raises OSError if one of them is missing."""
    with tempfile.TemporaryDirectory() as directory:
        async with OddServers(Path(directory)).serving() as servers:
            client = Kadcrawl(servers.authority)
            ours = {name: await client.outcome(each, servers.url(name)) for name, each in BEHAVIORS.items()}
            curl = {
                name: await curl_outcome(behavior, servers.url(name), servers.authority)
                for name, behavior in BEHAVIORS.items()
            }
            rows = [[name, servers.url(name), behavior.shows] for name, behavior in BEHAVIORS.items()]
            scrapy = json.loads(
                await _output(scrapy_python, str(ROOT / "scripts/odd_servers/scrapy_client.py"), text=json.dumps(rows))
            )
    for name, behavior in BEHAVIORS.items():
        if ours[name] != behavior.kadcrawl:
            print(f"{name}: kadcrawl: {ours[name]}, and not as the table says: {behavior.kadcrawl}", file=sys.stderr)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "curl": curl_version(await _output("curl", "--version")),
        "scrapy": scrapy["version"],
        "outcomes": {
            f"{name.rpartition('-')[0]}: {behavior.does}": {"curl": curl[name], "scrapy": scrapy["outcomes"][name]}
            for name, behavior in BEHAVIORS.items()
        },
    }


async def _output(*command: str, text: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate(text.encode())
    return out.decode()


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m scripts.odd_servers", description=__doc__)
    parser.add_argument("--scrapy-python", default=".venv-bench/bin/python", help="A Python that has Scrapy.")
    figures = asyncio.run(measured(parser.parse_args().scrapy_python))
    (ROOT / KEPT).write_text(json.dumps(figures, indent=1) + "\n")
    print(f"wrote {KEPT}: {len(figures['outcomes'])} behaviors")


if __name__ == "__main__":
    main()
