"""A server of the dashboard with a made-up document, which tests change as they like."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import web

ASSETS = Path(__file__).parents[3] / "kadcrawl" / "web" / "assets"
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
WAY = {
    "url": "https://docs0.example.org/guide",
    "key": "5f3a90c1" + "0" * 32,
    "site": "docs0.example.org",
    "state": "failed",
    "reason": "status 404",
    "history": [{"at": 1_795_999_000, "status": 404, "what": "fetched, 1.2 kB"}],
    "why": ["The scope has this host.", "The robots.txt of the site allows it."],
}


class FakeDashboard:
    """Serves the pages and one document. `change` tells all viewers of a patch, `orders` are those that came."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.orders: list[dict[str, Any]] = []
        self.tokens = {"once"}
        self.resumed: list[str] = []
        self.url = ""
        self._viewers: set[asyncio.Queue[str]] = set()
        self._number = 0

    def change(self, patch: dict[str, Any]) -> None:
        """Tell all viewers of a change."""
        self._number += 1
        for viewer in self._viewers:
            viewer.put_nowait(f"id: {self._number}\nevent: change\ndata: {json.dumps(patch)}\n\n")

    def cut(self) -> None:
        """End all connections of viewers."""
        for viewer in self._viewers:
            viewer.put_nowait("")

    async def page(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("path", "index.html")
        path = ASSETS / name
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return web.Response(body=path.read_bytes(), content_type=TYPES[path.suffix], headers=headers)

    async def session(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            token = (await request.json())["token"]
            if token not in self.tokens:
                return web.json_response({"error": "no such token"}, status=401)
            self.tokens.discard(token)
        elif request.cookies.get("kadcrawl_session") != "yes":
            return web.json_response({"error": "no session"}, status=401)
        answer = web.json_response({"control": self.document["control"], "header": "secret"})
        answer.set_cookie("kadcrawl_session", "yes", httponly=True, samesite="Strict")
        return answer

    async def events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        if last := request.headers.get("Last-Event-ID"):
            self.resumed.append(last)
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._viewers.add(queue)
        try:
            text = json.dumps(self.document)
            await response.write(f"id: {self._number}\nretry: 100\nevent: state\ndata: {text}\n\n".encode())
            while data := await queue.get():
                await response.write(data.encode())
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._viewers.discard(queue)
        return response

    async def way(self, request: web.Request) -> web.Response:
        peers = list(self.document["peers"].items())
        owner, backup = ({"id": node_id, "address": peer["address"]} for node_id, peer in (peers[0], peers[-1]))
        if not request.query["url"].startswith("http"):
            return web.json_response({"error": "This is no http(s) URL. Type it whole."}, status=400)
        return web.json_response(WAY | {"url": request.query["url"], "owner": owner, "backups": [backup]})

    async def check(self, request: web.Request) -> web.Response:
        return web.json_response({"url": request.query["url"], "why": ["The robots.txt of the site forbids it."]})

    async def order(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Kadcrawl-Token") != "secret":
            return web.json_response({"error": "The token of the order is missing."}, status=403)
        self.orders.append(await request.json())
        return web.json_response({"said": "The order is given to all peers."})

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/", self.page)
        application.router.add_get("/assets/{path:.+}", self.page)
        application.router.add_route("*", "/session", self.session)
        application.router.add_get("/events", self.events)
        application.router.add_get("/api/url", self.way)
        application.router.add_get("/api/check", self.check)
        application.router.add_post("/api/orders", self.order)
        return application


@asynccontextmanager
async def serving(document: dict[str, Any]) -> AsyncIterator[FakeDashboard]:
    """Serve a document on loopback, until the block ends."""
    dashboard = FakeDashboard(document)
    runner = web.AppRunner(dashboard.application(), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        dashboard.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield dashboard
    finally:
        dashboard.cut()
        with suppress(asyncio.CancelledError):
            await runner.cleanup()
