"""Helpers that several tests use.

Here are stores with numbered entries (`stores`), the records that peers wrote (`records`), hooks (`hooks`) and waiting
(`waiting`). `sites` are the servers that peers crawl, and their proxies. `links` are members, contacts and messages at
the ends of a link. `sinks` are the directory of a peer and the sinks over it. `swarm` are peers and the command, and
parts of peers in a simulated world. `examples` runs the examples of the documentation.
"""
