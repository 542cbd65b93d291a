"""`kadcrawl crawl` runs a swarm of processes on this machine: a parent starts peers, watches them, and ends with them.

`supervisor` is the parent. `child_process` is the parent's view of one child, and `child_main` is the child itself, a
process with one peer. `protocol` defines the lines of JSON between them. `salvage` reads the directory of a dead child.
`directory_check` keeps local crawls and single peers out of each other's directories.
"""
