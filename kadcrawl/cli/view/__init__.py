"""The view is all that a person sees: progress, tables, the summary, the status, and explanations.

`progress` shows a running crawl, on a terminal by `live`, and `table` is the table of peers. `summary` adds up the
figures of a crawl for its last lines and --summary. `last_lines` explains failures by `failure_reasons` and
`failed_examples`, names the `result_files`, and says what to type next. `status` prints the answer of `kadcrawl
status`, and `blocked_reasons` the reasons for which peers wait. `explain` tells the fate of a URL in a job, and
`saved_page` the records of a saved page. `join_hint` prints the command by which others join.
"""
