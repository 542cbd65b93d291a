"""The destinations of results besides the peer's own directory: databases, other directories, object stores.

A sink *follows* the files that a peer writes anyway. pages.jsonl and records.jsonl grow only by whole lines that are
already journaled, so the files are the queue. The crawl waits for no sink, a sink that is down loses nothing, and a new
sink gets everything from the beginning. Each batch of lines is written to the sink by key, so a repeat overwrites. The
sink itself keeps its *offset* in the log, with the data or after it. So after any kill each line is delivered at least
once and is in the sink exactly once, and a sink that was emptied is filled again.

`sink_names` parses the sinks that a person names. `log_reader` and `batch` read the lines. `sqlite`, `mongo` and
`part_files` are the sinks, with rows from `tables`, `csv_rows` and `parquet`. `part_files` writes JSON lines, CSV and
Parquet to `destinations`, a directory or any fsspec URL. `standard_output` has the lines of an export to a pipe. `sink`
is their interface, and
`plug_ins` finds sinks of other packages. `log_work` delivers lines, and `warc_work`
uploads WARC files. `delivery` retries one of these after failures, and `deliveries` are all of one directory.
"""
