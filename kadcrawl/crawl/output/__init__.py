"""The files of a crawl: page log, record log, WARC, counters."""
