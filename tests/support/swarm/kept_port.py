"""A port at which nobody listens until a peer of the test does.

A port that was only looked for and closed again may go to a connection or a listener of another test meanwhile.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"


@contextmanager
def kept_port(port: int = 0) -> Iterator[int]:
    """Keep a port of `HOST`, by default any, and yield it: the system gives it to nobody who does not name it.

    Linux lets a peer listen there all the same, as both sockets have SO_REUSEADDR and this one does not listen.
    """
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((HOST, port))
        yield place.getsockname()[1]
