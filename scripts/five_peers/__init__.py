"""P2's question on real processes: five peers of unequal power crawl 1,000 pages. When is the last of them done?

The peers are ordinary `kadcrawl start` and `kadcrawl join` processes, each asking from a loopback address of its own,
by which the web knows them (`web`): it answers each at the pace and with the bandwidth of one of the five nodes of P2,
Table 1, in the table's proportions. Every peer owns a fifth of the pages (`run`); what becomes of that is up to the
balance. Run it with ``python -m scripts.five_peers``.
"""
