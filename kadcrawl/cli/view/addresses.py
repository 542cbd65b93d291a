"""Addresses as a person reads them.

Tests: tests/cli/test_command.py
"""


def shown(address: tuple[str, int]) -> str:
    """Return the address as HOST:PORT, as the options of the command read it."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
