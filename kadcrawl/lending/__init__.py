"""Load balance: peers with much work lend pending URLs to peers with little (P1 1.4, P2), and to leaves (P3).

The decisions are in balance/; this package holds the state and the conversations. `balancer.py` measures the load of
one peer at each update, and one of two policies then chooses what to lend: `level_policy.py` by load level, or
`drain_policy.py` by seconds to drain. `throughput_learning.py` predicts those seconds from the machine's profile, and
`block_divider.py` divides blocks by them.
`blocks.py` is what both policies see of a peer: its waiting URLs, its contacts, and how to lend a block.

`lender.py` lends pages and takes them back, with one `loan.py` record for each loan. `borrower.py` accepts loans,
reports on them and returns them; `borrowed_store.py` shows the borrowed pages to a frontier and a crawler. `loans.py`
puts lender and borrower of one peer together. `leaf_host.py` answers the leaves that ask a full peer for work.

A lent page stays PENDING at its lender. A lease (balance/leases.py) makes sure that lender and borrower never fetch it
at the same time.
"""
