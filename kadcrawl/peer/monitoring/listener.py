"""`MetricsListener` answers `/metrics`, `/healthz` and `/readyz` of one peer on an address of its own.

It answers whoever reaches the address, without a password, and changes nothing. It knows of no other peer: Prometheus
asks each peer. A file in the peer's directory names the address in the form of Prometheus' file_sd_configs. Importing
this module loads aiohttp.web and prometheus_client.
"""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from aiohttp import web

from kadcrawl.errors import StartError, StorageError
from kadcrawl.link.http_log import quiet_logger
from kadcrawl.link.wire.peer_state import PeerState
from kadcrawl.peer.monitoring.exposition import Exposition
from kadcrawl.peer.monitoring.monitored_peer import MonitoredPeer
from kadcrawl.peer.monitoring.readiness import Readiness, ReadinessFacts
from kadcrawl.peer.monitoring.readings import Reading, readings
from kadcrawl.peer.monitoring.request_check import refusal
from kadcrawl.system.duration_histogram import DurationHistogram
from kadcrawl.system.file_names import METRICS_TARGETS
from kadcrawl.system.host_header import is_loopback
from kadcrawl.system.listening import listen

METRICS_CONNECTIONS_MAX = 32
"""Connections at a time. Prometheus needs one, and one more than these takes the place of the oldest."""
HEALTH_S = 5.0
"""Seconds within which the journal must commit the writes that wait, for the peer to count as healthy."""
LAG_INTERVAL_S = 1.0
"""Time between two looks at the lag of the event loop."""
ENDING = frozenset({PeerState.STOPPING, PeerState.LEAVING})
PATHS = ("/metrics", "/healthz", "/readyz")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

log = logging.getLogger(__name__)


class MetricsListener:
    """The listener of one peer."""

    def __init__(self, peer: MonitoredPeer, address: tuple[str, int]) -> None:
        self._peer = peer
        self._host, self._port = address
        self._is_loopback = is_loopback(self._host)
        self._lags = DurationHistogram()
        self._readiness = Readiness()
        self._exposition = Exposition(self._read)
        self._http = web.Server(self._answer, access_log=None, logger=quiet_logger(log, self._note_broken))
        self._listening: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The address (host, port) at which the peer is monitored."""
        return self._host, self._port

    async def open(self) -> None:
        """Listen, and name the address in the peer's directory. Raises StartError."""
        try:
            self._listening = await listen(self._protocol, self._host, self._port)
        except (OSError, OverflowError) as error:
            raise StartError(
                f"cannot listen for --metrics on {self._shown}: {error}; choose another: --metrics HOST:PORT"
            ) from None
        self._port = self._listening.sockets[0].getsockname()[1]
        log.info("metrics.listening at=%s", self._shown)
        if not self._is_loopback:
            log.warning("metrics.exposed at=%s", self._shown)
        labels = {"peer": self._peer.peer_id().hex()[:8]}
        with suppress(OSError):  # Prometheus can be told otherwise.
            self._targets.write_text(json.dumps([{"targets": [self._shown], "labels": labels}]) + "\n")

    async def close(self) -> None:
        """Listen no more, and end all connections."""
        with suppress(OSError):
            self._targets.unlink()
        if self._listening is not None:
            self._listening.close()
        await self._http.shutdown(1.0)

    async def run(self) -> None:
        """Watch the lag of the event loop, until cancelled."""
        time = asyncio.get_running_loop().time
        while True:
            due = time() + LAG_INTERVAL_S
            await asyncio.sleep(LAG_INTERVAL_S)
            self._lags.observe(time() - due)

    # --- inside ----------------------------------------------------------------------------------------------------

    @property
    def _shown(self) -> str:
        return f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"

    @property
    def _targets(self) -> Path:
        return self._peer.resources.config.data / METRICS_TARGETS

    def _protocol(self) -> asyncio.Protocol:
        if len(connections := self._http.connections) >= METRICS_CONNECTIONS_MAX:
            connections[0].force_close()
        return self._http()

    def _read(self) -> Iterator[Reading]:
        yield Reading("event_loop_lag_seconds", self._lags)
        yield from readings(self._peer)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        refused = refusal(request.method, request.headers.get("Host"), is_loopback=self._is_loopback)
        if refused is not None:
            response = _said(refused.why, refused.status)
            if refused.status is HTTPStatus.METHOD_NOT_ALLOWED:
                response.headers["Allow"] = "GET, HEAD"
            return response
        match request.path:
            case "/metrics":
                text, media_type = self._exposition.text(request.headers.get("Accept", ""))
                return web.Response(body=text, headers={**_HEADERS, "Content-Type": media_type})
            case "/healthz":
                return _judged(await self._why_unhealthy())
            case "/readyz":
                return _judged(self._readiness.why_not(self._facts()))
            case _:
                return _said(f"there is nothing here but {', '.join(PATHS)}", HTTPStatus.NOT_FOUND)

    async def _why_unhealthy(self) -> str:
        """Return the reason for which the peer should be started again, or an empty text."""
        try:
            async with asyncio.timeout(HEALTH_S):
                await self._peer.resources.store.journal.durable()
        except StorageError:
            return "the journal refuses all writes; the log says why"
        except TimeoutError:
            return f"the journal has not committed for {HEALTH_S:g} s"
        return ""

    def _facts(self) -> ReadinessFacts:
        runtime, crawlers = self._peer.runtime(), self._peer.crawlers()
        is_ending = self._peer.state() in ENDING
        if runtime is None or not runtime.begun:
            return ReadinessFacts(begun=bool(crawlers), joining=False, leaving=is_ending, in_doubt=False, unsettled=0)
        return ReadinessFacts(
            begun=True,
            joining=runtime.joining,
            leaving=is_ending,
            in_doubt=runtime.cells.in_doubt,
            unsettled=runtime.cells.unsettled,
        )

    def _note_broken(self, why: str) -> None:
        log.debug("metrics.broken_http why=%s", why)


def _judged(why_not: str) -> web.Response:
    return _said(why_not or "ok", HTTPStatus.SERVICE_UNAVAILABLE if why_not else HTTPStatus.OK)


def _said(text: str, status: HTTPStatus) -> web.Response:
    return web.Response(text=text + "\n", status=status, headers=_HEADERS)
