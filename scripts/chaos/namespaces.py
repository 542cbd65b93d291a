"""Network namespaces: each is a machine of its own as far as its network goes. Linux, root and `ip` (iproute2) only.

They outlive whoever made them unless deleted, so their names carry the maker's process id, and `remove_stale` deletes
those of makers that are dead. A socket belongs for good to the namespace its thread was in when it was opened.
"""

import ctypes
import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

TUN: Final = Path("/dev/net/tun")
DEVICE: Final = "tun0"
"""Name of the device in each namespace."""
MTU: Final = 1400
"""Bytes of a packet, as over a tunnel."""

_NAMES: Final = Path("/run/netns")
_NAME: Final = re.compile(r"kadcrawl-(?P<pid>[0-9]+)-[0-9]+")
_CLONE_NEWNET: Final = 0x40000000
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN_NO_PI: Final = 0x0001 | 0x1000
"""Whole IP packets, with nothing before them."""

_numbers = count(1)


class Namespace:
    """Context manager: one namespace, there while it is open. Raises OSError, CalledProcessError if it cannot be."""

    def __init__(self) -> None:
        self.name = f"kadcrawl-{os.getpid()}-{next(_numbers)}"

    def __enter__(self) -> Self:
        if (_NAMES / self.name).exists():
            _ip("netns", "delete", self.name)  # Of a dead process whose id has come round.
        _ip("netns", "add", self.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ip("netns", "delete", self.name)

    @property
    def prefix(self) -> list[str]:
        """The words before a command that make it run in this namespace, as the same process."""
        return ["ip", "netns", "exec", self.name]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let this thread enter the namespace. Sockets that it opens are in there, sockets of other threads are not."""
        # Python has os.setns only from 3.12 on.
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/thread-self/ns/net").open() as before, (_NAMES / self.name).open() as inside:
            _enter(libc, inside.fileno())
            try:
                yield
            finally:
                _enter(libc, before.fileno())

    def open_device(self, addresses: Iterable[str]) -> int:
        """Give it a TUN device with these addresses, CIDRs, that leads nowhere else than to the returned descriptor.

        That one does not block; reading and writing a packet each. The device is gone when it is closed.
        """
        with self.entered():
            device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN_NO_PI))
                for address in addresses:
                    _ip("-n", self.name, "address", "add", address, "dev", DEVICE)
                _ip("-n", self.name, "link", "set", "lo", "up")
                _ip("-n", self.name, "link", "set", DEVICE, "mtu", str(MTU), "up")
            except BaseException:
                os.close(device)
                raise
        return device


def unavailable() -> str | None:
    """Return the reason in one sentence if there can be no namespaces here, or None. Makes one to see."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the command ip (of iproute2)"
    if not TUN.exists():
        return f"there is no {TUN}"
    try:
        with Namespace() as probe:
            os.close(probe.open_device(["10.0.0.1/32"]))
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
        return f"this machine makes no network namespaces: {said}"
    return None


def stale(names: Iterable[str], living: Callable[[int], bool]) -> list[str]:
    """Return which of these names are of namespaces made here by a process that is not `living`."""
    found = [(name, _NAME.fullmatch(name)) for name in names]
    return [name for name, parts in found if parts is not None and not living(int(parts["pid"]))]


def remove_stale() -> None:
    """Delete the namespaces that killed processes left."""
    names = [path.name for path in _NAMES.iterdir()] if _NAMES.is_dir() else []
    for name in stale(names, lambda pid: Path(f"/proc/{pid}").exists()):
        _ip("netns", "delete", name)


def _ip(*arguments: str) -> None:
    # A Ctrl-C is not for it, as it would leave half a namespace.
    subprocess.run(["ip", *arguments], check=True, capture_output=True, start_new_session=True)


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
