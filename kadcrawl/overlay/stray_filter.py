"""Datagrams that begin as no member's do are dropped by the kernel, where they cost this process nothing.

A classic BPF program on the socket (socket(7), SO_ATTACH_FILTER), which Linux has and others do without: there each
datagram is looked at here. It keeps out who knows nothing of the swarm; who has seen its datagrams go by can begin
one alike, and is found out by the keyed hash (members/sealing.py).
"""

import ctypes
import os
import socket
import struct
import sys
from collections.abc import Sequence

_SO_ATTACH_FILTER = 26
_UDP_HEADER_BYTES = 8
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALL = 0xFFFF_FFFF

_INSTRUCTION = struct.Struct("=HBBI")
_PROGRAM = struct.Struct("@HP")


def drop_strays(descriptor: int, labels: Sequence[bytes]) -> bool:
    """Let only datagrams through that begin with one of these labels, of 4 bytes; return whether the system can."""
    if sys.platform != "linux":
        return False
    code = _program(labels)
    instructions = ctypes.create_string_buffer(code, len(code))
    program = _PROGRAM.pack(len(code) // _INSTRUCTION.size, ctypes.addressof(instructions))
    with socket.socket(fileno=os.dup(descriptor)) as udp:
        try:
            udp.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        except OSError:
            return False
    return True


def _program(labels: Sequence[bytes]) -> bytes:
    """Load the first word after the UDP header; take the datagram whole if it is a label, else nothing of it."""
    count = len(labels)
    instructions = [(_LOAD_WORD, 0, 0, _UDP_HEADER_BYTES)]
    for index, label in enumerate(labels):
        # Over the labels that are left and the refusal.
        instructions.append((_JUMP_IF_EQUAL, count - index, 0, int.from_bytes(label, "big")))
    instructions += [(_RETURN, 0, 0, 0), (_RETURN, 0, 0, _ALL)]
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in instructions)
