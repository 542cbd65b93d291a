"""The examples of the documentation, run as they stand.

A reader copies an example as it is, so nothing in it is replaced before it runs. The world around it is made up
instead: `virtual_network` gives each process of an example the names, addresses and machines that the page speaks of,
and `example_web` and `web_server` answer for https://example.org and https://example.net on loopback.

`page` reads the blocks of a Markdown page, `console` the commands and outputs of a block, and `plan` turns blocks into
steps and finds breaches of the rules for writers (CONTRIBUTING.md). `repository_commands` knows the commands that are
only checked. `compare` masks figures that vary and compares outputs. `update` writes new outputs into a page, and
`summary` names the slowest examples. These are decisions. `machine` is a shell, `programs` are the programs on its
path, `processes` finds all that a page started, and `run_page` takes the steps of a page: the conversations.
"""
