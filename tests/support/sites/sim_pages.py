"""The address of the simulated web, and a directory in memory if the machine has such a directory."""

from pathlib import Path

WEB_IP = "198.18.0.1"
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
