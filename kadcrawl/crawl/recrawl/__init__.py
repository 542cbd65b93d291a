"""A job with a recrawl fetches each page again after a period.

`policy` decides when a page is due and whether the page has changed. `rounds` applies the policy to the store.
`due_cells` orders the open cells by their next due page, and `scheduler` brings due pages back into the frontier. A job
that keeps fingerprints in place of keys uses `expiry` instead: old fingerprints expire, and the seeds are offered
again.
"""
