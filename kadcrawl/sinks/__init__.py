"""Where results go besides the peer's own directory: databases, files elsewhere, object stores.

A sink *follows* the files a peer writes anyway. pages.jsonl and records.jsonl only ever grow by whole lines that are
already journaled, so they are the queue: the crawl waits for no sink, a sink that is down loses nothing, and one named
for the first time gets all there is. Each batch of lines is put into the sink by key, so a repeat overwrites; how far
it has come, its *mark*, is kept by the sink itself, with the data or after it. So whatever is killed at whatever
moment, lines are delivered at least once and stand there exactly once; and a sink that was emptied is filled again.

`names` reads what a person wrote; `log_reader` and `batch` are the lines; `sqlite`, `mongo` and `parts` (JSON lines
and Parquet, by `places` to a directory or any fsspec URL) are the sinks; `log_work` hands lines over and `warc_work`
uploads WARC files; `delivery` keeps one of these going through failures, and `deliveries` is all of one directory.
"""
