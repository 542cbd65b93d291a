"""Peers on loopback, peers that die, the command in a process, and parts of peers in a simulated world."""
