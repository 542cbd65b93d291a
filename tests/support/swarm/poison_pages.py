"""Marks that a process leaves when it dies while it reads pages."""

from pathlib import Path

from kadcrawl.crawl.fetch.poison_pages import PoisonPages


async def dies_reading(directory: Path, *urls: str) -> None:
    """Leave the file as a process does that is killed while it reads these."""
    deadly = PoisonPages(directory)
    begun = [deadly.reading(url) for url in urls]
    for one in begun:
        await one.__aenter__()
    deadly.close()
