"""Odd servers: a table of unusual answers of web servers, and what kadcrawl and other clients make of them.

`behaviors` and the files of topics are the table. `server` answers as the table says. `clients` asks with kadcrawl and
curl, and `scrapy_client` with Scrapy. `python -m scripts.odd_servers` measures curl and Scrapy, and the page
docs/explanation/odd-servers.md is made of the table and of these measurements. A test compares kadcrawl with the table.
"""
