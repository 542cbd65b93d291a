"""Connections through a proxy: aiohttp's own for http:// and https://, python-socks for socks5://.

All that goes wrong before there is a connection becomes `Broken`, as nothing else says so surely whose fault it was:
`FetchError.PROXY` if the proxy itself could not be connected to or wants other credentials, `FetchError.CONNECT` if
it did not get through to the site. No text of it holds credentials. The guard sees the proxy's address as any other.

Tests: tests/crawl/proxies/test_fetcher.py, tests/peer/test_proxies.py
"""

import asyncio
from typing import Any

import aiohttp
from aiohttp.client_exceptions import ClientConnectorError, ClientProxyConnectionError
from aiohttp.client_proto import ResponseHandler
from python_socks import ProxyConnectionError, ProxyError, ProxyType
from python_socks.async_.asyncio import Proxy as SocksProxy

from kadcrawl.crawl.fetch.address_guard import AddressRefused, Guard
from kadcrawl.crawl.fetch.errors import NO_SOCKET_ERRNOS, Broken
from kadcrawl.crawl.fetch.result import FetchError

SOCKS = "socks5"


class ProxyConnector(aiohttp.TCPConnector):
    """Connects directly or, as each request says, through a proxy."""

    def __init__(self, guard: Guard, **options: Any) -> None:
        """`options` are those of aiohttp."""
        super().__init__(socket_factory=guard.socket, **options)
        self._guard = guard

    def _update_proxy_auth_header_and_build_proxy_req(self, req: aiohttp.ClientRequest) -> aiohttp.ClientRequest:
        # The credentials of SOCKS are no header: aiohttp would send them to the site.
        assert req.proxy is not None, "only asked for requests through a proxy"
        return req if req.proxy.scheme == SOCKS else super()._update_proxy_auth_header_and_build_proxy_req(req)

    async def _create_direct_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,
        *,
        client_error: type[Exception] = ClientConnectorError,
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        try:
            return await super()._create_direct_connection(req, traces, timeout, client_error=client_error)
        except (aiohttp.ClientError, OSError) as error:
            if client_error is not ClientProxyConnectionError:
                raise
            raise _to_proxy(error) from error

    async def _create_proxy_connection(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> tuple[asyncio.BaseTransport, ResponseHandler]:
        assert req.proxy is not None, "only asked for requests through a proxy"
        try:
            if req.proxy.scheme == SOCKS:
                return await self._by_socks(req, timeout)
            return await super()._create_proxy_connection(req, traces, timeout)
        except (Broken, TimeoutError, aiohttp.ClientSSLError):
            raise
        except aiohttp.ClientHttpProxyError as error:
            if error.status == 407:
                raise Broken(FetchError.PROXY, "the proxy wants other credentials") from error
            raise Broken(FetchError.CONNECT, f"the proxy answered {error.status}") from error
        except Exception as error:
            # Whatever it sent instead of an answer. The exception may name the proxy with its password.
            raise Broken(FetchError.CONNECT, f"no tunnel through the proxy: {type(error).__name__}") from None

    async def _by_socks(
        self, req: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        proxy = req.proxy
        assert proxy is not None, "only asked for requests through a proxy"
        assert proxy.host is not None, "a proxy has a host"
        assert proxy.port is not None, "and a port"
        assert req.port is not None, "a canonical URL has one"
        try:
            found = await self._resolve_host(proxy.host, proxy.port)
        except (aiohttp.ClientError, OSError) as error:
            raise _to_proxy(error) from error
        addresses = [one["host"] for one in found if self._guard.permits(one["host"])]
        if not addresses:
            raise _to_proxy(AddressRefused(found[0]["host"]) if found else OSError("it has no address"))
        for address in addresses:
            way = SocksProxy(ProxyType.SOCKS5, address, proxy.port, proxy.user or "", proxy.password or "", rdns=True)
            try:
                sock = await way.connect(req.host, req.port)
                break
            except ProxyConnectionError as error:
                if address == addresses[-1]:
                    raise _to_proxy(error) from error
            except ProxyError as error:
                raise Broken(FetchError.CONNECT, f"the proxy: {error}") from None
        context = self._get_ssl_context(req)
        hostname = req.host.rstrip(".") if context is not None else None
        return await self._wrap_existing_connection(
            self._factory, timeout=timeout, ssl=context, sock=sock, server_hostname=hostname, req=req
        )


def _to_proxy(error: Exception) -> Broken:
    """Return the meaning of a failed connection to the proxy itself."""
    cause = error.os_error if isinstance(error, ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno in NO_SOCKET_ERRNOS:
        return Broken(FetchError.NO_SOCKET, str(cause))
    if isinstance(cause, AddressRefused):
        return Broken(FetchError.PROXY, f"the proxy's address {cause.address} is not public")
    return Broken(FetchError.PROXY, f"no connection to the proxy: {error}")
