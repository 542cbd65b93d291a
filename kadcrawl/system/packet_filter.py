"""Datagrams that begin as no member's do are dropped by the kernel, where they cost this process nothing.

A classic BPF program on the socket (socket(7), SO_ATTACH_FILTER), which Linux has and others do without: there each
datagram is looked at here. It keeps out who knows nothing of the swarm; who has seen its datagrams go by can begin
one alike, and is found out by the keyed hash (members/sealing.py). In a flood of those only a share of what unknown
addresses send comes through (overlay/flood_sampler.py).

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
"""Addresses in one program: 8 to 20 kB of the kernel's memory for a socket's options, of which 20 kB is the least."""

_SO_ATTACH_FILTER = 26
_PROGRAM = struct.Struct("@HP")
_INSTRUCTION = struct.Struct("=HBBI")
_LOAD_WORD, _LOAD_HALF, _LOAD_KEPT, _KEEP = 0x20, 0x28, 0x60, 0x02
_JUMP_IF_EQUAL, _JUMP_IF_ANY_BIT, _RETURN = 0x15, 0x45, 0x06
_ALL = 0xFFFF_FFFF

_UDP_HEADER_BYTES = 8
_PORT_AT = 0
_NETWORK = 0xFFF0_0000
"""Where the IP header begins (SKF_NET_OFF)."""
_CHANCE = 0xFFFF_F038
"""Where a random word is (SKF_AD_OFF + SKF_AD_RANDOM)."""
_SOURCE_AT = {4: (12,), 6: (8, 12, 16, 20)}
"""The words of the source address in an IP header, by version."""

_Address = tuple[str, int]
_Instruction = tuple[int, int, int, int]


def attach_packet_filter(
    descriptor: int, labels: Sequence[bytes], one_in: int = 1, known: Iterable[_Address] = ()
) -> bool:
    """Let only datagrams through that begin with one of these labels, of 4 bytes; return whether the system can.

    Of what does not come from the `known` addresses (literals of the socket's own IP version) only one in `one_in`, a
    power of two, comes through; of the addresses the first 200 count.
    """
    if sys.platform != "linux":
        return False
    with socket.socket(fileno=os.dup(descriptor)) as udp:
        code = _begin(labels)
        if one_in > 1:
            code += _thin_out(one_in, udp.family, known)
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


def _begin(labels: Sequence[bytes]) -> list[_Instruction]:
    """Load the first word after the UDP header; go on if it is a label, else take nothing of the datagram."""
    code: list[_Instruction] = [(_LOAD_WORD, 0, 0, _UDP_HEADER_BYTES)]
    for left, label in zip(range(len(labels), 0, -1), labels, strict=True):
        # Over the labels that are left and the refusal.
        code.append((_JUMP_IF_EQUAL, left, 0, int.from_bytes(label, "big")))
    return [*code, (_RETURN, 0, 0, 0)]


def _thin_out(one_in: int, family: int, known: Iterable[_Address]) -> list[_Instruction]:
    """Go on with one in so many; take the others whole if they come from a known address, else nothing of them."""
    words = _SOURCE_AT[6 if family == socket.AF_INET6 else 4]
    loads = [(_LOAD_WORD, _NETWORK + at) for at in words] + [(_LOAD_HALF, _PORT_AT)]
    checks: list[_Instruction] = []
    for kept, (load, at) in enumerate(loads):
        checks += [(load, 0, 0, at), (_KEEP, 0, 0, kept)]
    for host, port in islice(known, FILTER_ADDRESSES_MAX):
        source = struct.unpack(f"!{len(words)}I", socket.inet_pton(family, host))
        for kept, value in enumerate((*source, port)):
            # Over what is left of this address.
            checks += [(_LOAD_KEPT, 0, 0, kept), (_JUMP_IF_EQUAL, 0, 2 * (len(loads) - 1 - kept) + 1, value)]
        checks.append((_RETURN, 0, 0, _ALL))
    checks.append((_RETURN, 0, 0, 0))
    # Further than a jump that depends on something can go, so what is taken is taken at once.
    return [(_LOAD_WORD, 0, 0, _CHANCE), (_JUMP_IF_ANY_BIT, 1, 0, one_in - 1), (_RETURN, 0, 0, _ALL), *checks]
