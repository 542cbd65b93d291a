"""The settings of a crawl: checked, immutable values without behavior.

`job` is the same on every peer of a swarm, `config` belongs to one peer, and `limits` bound its resources. `job_file`
reads a job from a TOML file, with the tables of `rule_file` and `site_file`. `site_rules` are the rules of a job for
single sites, and `site_settings` applies them. `page_rules` are the rules of a job for pages by their URL, `proxy_list`
its proxies. `units` reads times and sizes, `unset` the word `none`, and `durations` shows times. `leaf_jobs` says which
jobs have leaves.
"""
