"""The frontier holds the URLs to fetch, by site, and gives each site its pace.

`frontier` decides which entry is next. `active_sites` keeps the politeness clock of each active site, and `site` is one
such site with its window of entries. `idle_clocks` keeps the clocks of sites without work. `unproven_quota` keeps sites
that do not answer from taking all requests. Decisions only: times are arguments.
"""
