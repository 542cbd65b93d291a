"""A socket filter in the kernel that drops datagrams without a member's label, at no cost for this process.

It is a classic BPF program on the socket (socket(7), SO_ATTACH_FILTER), which only Linux has. On other systems the
process reads each datagram. The filter rejects senders that know nothing of the swarm. A sender that has seen the
swarm's datagrams can copy a label, and is rejected by the keyed hash (members/sealing.py). In a flood of such datagrams
the filter passes only a share of those from unknown addresses (overlay/flood_sampler.py).

Tests: tests/overlay/test_flood_sampler.py
"""

import ctypes
import os
import socket
import struct
import sys
from collections.abc import Iterable, Sequence
from itertools import islice

FILTER_ADDRESSES_MAX = 200
"""Addresses in one program: 8 to 20 kB of the kernel's memory for a socket's options, which is at least 20 kB."""

_SO_ATTACH_FILTER = 26
_PROGRAM = struct.Struct("@HP")
_INSTRUCTION = struct.Struct("=HBBI")
_LOAD_WORD, _LOAD_HALF, _LOAD_KEPT, _KEEP = 0x20, 0x28, 0x60, 0x02
_JUMP_IF_EQUAL, _JUMP_IF_ANY_BIT, _RETURN = 0x15, 0x45, 0x06
_ALL = 0xFFFF_FFFF

_UDP_HEADER_BYTES = 8
_PORT_AT = 0
_NETWORK = 0xFFF0_0000
"""The offset of the IP header (SKF_NET_OFF)."""
_RANDOM = 0xFFFF_F038
"""The offset of a random word (SKF_AD_OFF + SKF_AD_RANDOM)."""
_SOURCE_AT = {4: (12,), 6: (8, 12, 16, 20)}
"""The offsets of the words of the source address in an IP header, by version."""

_Address = tuple[str, int]
_Instruction = tuple[int, int, int, int]


def attach_packet_filter(
    descriptor: int, labels: Sequence[bytes], one_in: int = 1, known: Iterable[_Address] = ()
) -> bool:
    """Pass only datagrams that begin with one of these labels of 4 bytes. Return whether the system can.

    Of datagrams that do not come from the `known` addresses (literals of the socket's own IP version) only one in
    `one_in`, a power of two, passes. Of the addresses the first 200 count.
    """
    if sys.platform != "linux":
        return False
    with socket.socket(fileno=os.dup(descriptor)) as udp:
        code = _match_labels(labels)
        if one_in > 1:
            code += _sample(one_in, udp.family, known)
        code.append((_RETURN, 0, 0, _ALL))
        packed = b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)
        instructions = ctypes.create_string_buffer(packed, len(packed))
        try:
            udp.setsockopt(
                socket.SOL_SOCKET, _SO_ATTACH_FILTER, _PROGRAM.pack(len(code), ctypes.addressof(instructions))
            )
        except OSError:
            return False
    return True


def _match_labels(labels: Sequence[bytes]) -> list[_Instruction]:
    """Return code that loads the first word after the UDP header, and drops the datagram unless it is a label."""
    code: list[_Instruction] = [(_LOAD_WORD, 0, 0, _UDP_HEADER_BYTES)]
    for left, label in zip(range(len(labels), 0, -1), labels, strict=True):
        # The jump skips the remaining labels and the refusal.
        code.append((_JUMP_IF_EQUAL, left, 0, int.from_bytes(label, "big")))
    return [*code, (_RETURN, 0, 0, 0)]


def _sample(one_in: int, family: int, known: Iterable[_Address]) -> list[_Instruction]:
    """Return code that passes one datagram in `one_in`, and of the others those from known addresses."""
    words = _SOURCE_AT[6 if family == socket.AF_INET6 else 4]
    loads = [(_LOAD_WORD, _NETWORK + at) for at in words] + [(_LOAD_HALF, _PORT_AT)]
    checks: list[_Instruction] = []
    for kept, (load, at) in enumerate(loads):
        checks += [(load, 0, 0, at), (_KEEP, 0, 0, kept)]
    for host, port in islice(known, FILTER_ADDRESSES_MAX):
        source = struct.unpack(f"!{len(words)}I", socket.inet_pton(family, host))
        for kept, value in enumerate((*source, port)):
            # The jump skips the rest of this address.
            checks += [(_LOAD_KEPT, 0, 0, kept), (_JUMP_IF_EQUAL, 0, 2 * (len(loads) - 1 - kept) + 1, value)]
        checks.append((_RETURN, 0, 0, _ALL))
    checks.append((_RETURN, 0, 0, 0))
    # The code after this is longer than a conditional jump reaches, so a drawn datagram is accepted here.
    return [(_LOAD_WORD, 0, 0, _RANDOM), (_JUMP_IF_ANY_BIT, 1, 0, one_in - 1), (_RETURN, 0, 0, _ALL), *checks]
