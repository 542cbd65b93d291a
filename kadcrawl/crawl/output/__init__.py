"""The crawl writes WARC files, a page log and a record log, and hands pages to an application.

`outputs` writes all files and ties them to the journal. `warc` is the WARC writer. `counters` holds the totals of the
peer. `page_stream` passes finished pages to an embedding application.
"""
