"""The scope decides which URLs belong to the crawl, and the partitioner which cell each URL lies in.

`scope` judges a URL by the seeds, patterns and limits of the job. `traps` knows the shapes of URLs that only traps
have. `query_limits` bounds URLs that differ only in their query. `sitemap_urls` names the sitemaps of a site.
`partitioner` computes the site, key and cell of a URL.
"""
