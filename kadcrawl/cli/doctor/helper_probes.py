"""Looks whether this Python uses the compiled parts of libraries, and the system's packet filter.

Tests: tests/cli/doctor/test_checkup.py
"""

import os
import socket

from kadcrawl.cli.doctor.libraries import Helpers
from kadcrawl.cli.run import new_event_loop
from kadcrawl.crawl.content.native_links import NATIVE, is_switched_off
from kadcrawl.system.packet_filter import attach_packet_filter

_LABEL = bytes(4)


def helpers() -> Helpers:
    """Return which compiled helpers are in use."""
    import aiohttp.http_parser

    loop = new_event_loop()
    loop.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        has_filter = attach_packet_filter(tried.fileno(), [_LABEL])
    return Helpers(
        uvloop=type(loop).__module__.startswith("uvloop"),
        http_parser=aiohttp.http_parser.HttpResponseParser is not aiohttp.http_parser.HttpResponseParserPy,
        packet_filter=has_filter,
        native_links=NATIVE is not None,
        is_pure=is_switched_off(os.environ),
    )
