"""Read the metrics of a peer over HTTP, as Prometheus does, and check their form."""

import asyncio
import os
import shutil
from collections.abc import Mapping

import aiohttp
import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

OPENMETRICS = "application/openmetrics-text; version=1.0.0"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""(name, labels) -> value."""


async def get(
    address: tuple[str, int] | None, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
) -> tuple[int, str, Mapping[str, str]]:
    """Return the status, text and headers of an answer."""
    assert address is not None, "the peer has no metrics"
    url = f"http://{address[0]}:{address[1]}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, url, headers=headers) as response:
        return response.status, await response.text(), dict(response.headers)


async def scrape(address: tuple[str, int] | None) -> Series:
    """Return all series of a peer. Both forms of the text must be well formed and have the same series."""
    status, text, _ = await get(address, "/metrics")
    assert 200 == status, text
    series = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    _, other, _ = await get(address, "/metrics", headers={"Accept": OPENMETRICS})
    names = {sample.name for family in openmetrics.text_string_to_metric_families(other) for sample in family.samples}  # type: ignore[no-untyped-call]
    assert names == {name for name, _ in series}
    return series


def value(series: Series, name: str, **labels: str) -> float:
    """Return the value of one series of kadcrawl."""
    return series[f"kadcrawl_{name}", frozenset(labels.items())]


async def promtool(*arguments: str, text: str = "") -> tuple[int, str]:
    """Return the exit code and output of promtool. The test is skipped without it, unless it must be there."""
    if shutil.which("promtool") is None:
        assert os.environ.get("KADCRAWL_REQUIRE_PROMTOOL") != "1", "promtool is not installed (Debian: prometheus)"
        pytest.skip("promtool is not installed")
    process = await asyncio.create_subprocess_exec(
        "promtool",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate(text.encode())
    return process.returncode or 0, said.decode()
