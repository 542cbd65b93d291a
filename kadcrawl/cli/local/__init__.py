"""`kadcrawl crawl` runs a swarm on this machine: a parent starts peers, watches them, and ends with them.

`supervisor` is the parent, and `child` is its view of one peer. The peer is a process (`child_process` in the parent,
`child_main` in the process itself) or a task of the parent (`child_task`). `peer_life` is what it does there. The first
processes are forked by `fork_server`, which `forked_process` in the parent asks for them.
`protocol` defines the messages between them. `salvage` reads the directory of a dead child, `resting` that of a crawl
that does not run, and `orders_at_rest` and `retry_at_rest` journal orders there. `directory_check` keeps local crawls
and single peers out of each other's directories.
"""
