"""Servers that peers crawl: whole webs, scripted and hostile sites, their pages and addresses, and proxies."""
