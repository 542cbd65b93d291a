"""The join hint is a command that joins this peer, to be pasted on this machine or on another.

A peer on loopback is joined from its own machine only. Its address is enough where own_peers.py finds its directory.
Otherwise the next peer needs the key and another directory.
Another machine's address is not known here. A peer that listens on all addresses is known by the address that leads to
this peer.
"""

import ipaddress
import shlex
from collections.abc import Sequence
from pathlib import Path

from kadcrawl.cli.own_peers import beside, directory_at
from kadcrawl.cli.view.addresses import shown
from kadcrawl.settings.config import Config
from kadcrawl.system.file_names import SWARM_KEY

ANYWHERE = {4: "0.0.0.0", 6: "::"}
"""All addresses of a machine, by IP version."""


def how_to_join(
    address: tuple[str, int], config: Config, hooks: Sequence[str] = (), *, needs_secrets: bool = False
) -> str:
    """Return in a sentence how others join the peer of this config at this address, with its job's hooks."""
    ip = ipaddress.ip_address(address[0])
    key_file = (config.data / SWARM_KEY).absolute()
    if ip.is_loopback:
        where = "on this machine"
        is_found = config.swarm_key is not None and directory_at(address) is not None
        key = [] if is_found else ["--key-file", str(key_file)]
        place = [] if is_found else ["--data", str(_another(config.data.absolute()))]
    else:
        where = f"on other machines, with a copy of {key_file}"
        key = ["--key-file", key_file.name]
        place = ["--listen", shown((ANYWHERE[ip.version], address[1]))]
    key = ["--insecure"] if config.swarm_key is None else key
    command = ["kadcrawl", "join", *key, *place]
    for network in config.allow_networks:
        command += ["--allow-network", network]
    for hook in hooks:
        command += ["--hook", hook]
    if needs_secrets:
        command += ["--secrets", "FILE"]
    command += ["--bootstrap", shown(address)]
    return f"{where}, others join with: {shlex.join(command)}"


def _another(data: Path) -> Path:
    """Return a directory beside this directory that does not exist yet."""
    return next(path for path in beside(data) if not path.exists())
