"""Seeds from files and pipes of any length.

`seed_file` reads lines, and knows how to go on from a place in them. `seed_feeder` sends them to a peer, and waits for
its answers. `crawl`, `start`, `join` and `add` use both.
"""
