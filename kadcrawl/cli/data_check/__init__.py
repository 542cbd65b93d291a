"""`kadcrawl check-data` compares the files of data directories with each other, and mends what it may.

`data_check` checks all peers of a directory. For each peer it calls `journal_check`, `line_check`, `warc_check` and
`state_file_check`, which enter the facts that they read into a `catalog`, a temporary database. The catalog finds the
lines, records and URLs that lack their counterpart. `data_finding` is the result. `data_repair` mends, with the help of
`warc_filler`, and nothing else changes a file. The memory stays small however large the directory is.
"""
