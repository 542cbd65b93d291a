"""Waves: one question to every peer of the swarm, and the detection of the crawl's end that uses them.

`wave` sends a question along the k-bucket tree and adds up the answers. `quiescence` decides from two surveys in a row
whether the crawl is over. `termination` decides when an idle peer asks, and tells the swarm the result. The rest of the
overlay is not needed here: a wave asks only for the contacts of each bucket (`BucketTree`).
"""
